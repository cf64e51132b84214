// Chrome stops a service worker 30 s after the last event or call of an extension API, also while a fetch is streaming.

/** In milliseconds. */
const INTERVAL = 20_000;

const ALARM = "go on";

let timer: ReturnType<typeof setInterval> | undefined;
/** Not known when the worker starts: the one before may have left its alarm. */
let wasAtWork: boolean | undefined;

/**
 * Keeps the worker alive while something is at work, and has it started again should it be stopped all the same: an update,
 * a crash, too little memory. What waits for a person needs neither: the panel starts the worker when they decide.
 */
export function keepAlive(isAtWork: boolean): void {
  if (isAtWork === wasAtWork) return;
  wasAtWork = isAtWork;
  clearInterval(timer);
  timer = isAtWork ? setInterval(() => void chrome.runtime.getPlatformInfo(), INTERVAL) : undefined;
  if (isAtWork) void chrome.alarms.create(ALARM, { periodInMinutes: 0.5 });
  else void chrome.alarms.clear(ALARM);
}
