// The soak in a page, driven by run.mjs.
import { startChurn, watchModule } from "./churn.mjs";

const moduleBytes = watchModule();
let churn;

window.soak = {
  start(given) {
    churn = startChurn(given);
  },
  sample: () => ({ module: moduleBytes(), counts: churn.counts, errors: churn.errors }),
  async stop() {
    await churn.stop();
    return { counts: churn.counts, errors: churn.errors };
  },
};
