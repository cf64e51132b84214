//! The wasm-bindgen exports behind crablet's npm package. Nothing here is called by hand: the TypeScript facade in `src/js` is the API.
