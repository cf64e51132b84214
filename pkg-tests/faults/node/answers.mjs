// Counts the bodies of answers that somebody still holds, once the garbage is collected: who forgets to let go of one keeps its
// connection where the server does not end it. To be imported before crablet.
let held = 0;
const registry = new FinalizationRegistry(() => {
  held -= 1;
});
const { fetch } = globalThis;

globalThis.fetch = async (...given) => {
  const answer = await fetch(...given);
  if (answer.body !== null) {
    held += 1;
    registry.register(answer.body);
  }
  return answer;
};

/** How many are held. */
export const heldAnswers = () => held;
