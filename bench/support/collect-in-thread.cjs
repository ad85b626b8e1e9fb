// Preloaded into every thread of a measured worker (`--require`, with `--expose-gc`): the thread that holds the cached
// workflows collects its heap when it is asked to, and says what is left.
const { BroadcastChannel, isMainThread } = require("node:worker_threads");
const { getHeapStatistics, queryObjects } = require("node:v8");

/** What no collection leaves behind: a plain one keeps workflows that have left the cache. */
globalThis.collectAll = () => {
  for (let round = 0; round < 3; round++) globalThis.gc();
  queryObjects?.(Function);
};

if (!isMainThread) {
  const channel = new BroadcastChannel("longhaul-bench-collect");
  channel.addEventListener("message", ({ data }) => {
    const creator = Object.keys(require.cache).find((path) => /[\\/]reusable-vm\.js$/.test(path));
    if (data !== "collect" || creator === undefined) return;
    globalThis.collectAll();
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
