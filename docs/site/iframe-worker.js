// Search from a folder: a page of file:// may not start a worker, so its script runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      const waiting = [];
      this.postMessage = (data) => waiting.push(data); // until the script listens
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) => Promise.all(urls.map((each) => this.#load(inside, each)));
      this.#load(inside, url).then(() => {
        this.postMessage = (data) => inside.dispatchEvent(new MessageEvent("message", { data }));
        waiting.forEach(this.postMessage);
      });
    }

    #load(inside, url) {
      return new Promise((loaded) => {
        const script = inside.document.createElement("script");
        script.src = url;
        script.addEventListener("load", loaded);
        inside.document.body.append(script);
      });
    }
  };
}
