// Preloaded into every thread of a measured worker (`--require`, with `--expose-gc`): the thread that holds the cached
// workflows collects its heap when it is asked to, and says what is left.
const { BroadcastChannel, isMainThread } = require("node:worker_threads");
const { getHeapStatistics } = require("node:v8");

if (!isMainThread) {
  const channel = new BroadcastChannel("longhaul-bench-collect");
  channel.addEventListener("message", ({ data }) => {
    const creator = Object.keys(require.cache).find((path) => /[\\/]reusable-vm\.js$/.test(path));
    if (data !== "collect" || creator === undefined) return;
    for (let round = 0; round < 3; round++) {
      globalThis.gc({ type: "major", execution: "sync", flavor: "last-resort" });
    }
    const cached = [...require(creator).ReusableVMWorkflowCreator.workflowByRunId.values()];
    const left = {
      heapBytes: getHeapStatistics().used_heap_size,
      workflows: cached.length,
      modules: [...(cached.at(-1)?.activator.moduleCache.keys() ?? [])],
    };
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- not a window
    channel.postMessage(left);
  });
  channel.unref();
}
