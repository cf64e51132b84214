//! Plants a defect in crablet, in builds for the fault harness alone.

use crablet::planted::{self, Defect};
use wasm_bindgen::prelude::wasm_bindgen;

/// Plants the defect of this number in the place of the one before; 0 plants none.
#[wasm_bindgen]
#[allow(unreachable_pub, reason = "wasm-bindgen exports only what is public")]
pub fn plant(number: u8) {
    planted::plant(Defect::ALL.into_iter().find(|defect| *defect as u8 == number));
}
