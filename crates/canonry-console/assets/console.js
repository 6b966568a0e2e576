// Keys, and nothing else that a page needs: every key presses a control that can be seen.
"use strict";
(() => {
  const field = (element) => element && (element.isContentEditable || /^(input|select|textarea)$/i.test(element.tagName));
  const seen = (element) => element && element.offsetParent !== null && !element.disabled;
  const find = (name, key) => [...document.querySelectorAll(`[${name}]`)].find((element) => element.getAttribute(name) === key && seen(element));

  // Requests under way. Until they are answered, keys do nothing: they would act on a row that the reader has left.
  const awaited = new Map(); // requests of htmx, each with the part of the page that its answer replaces
  const overtaken = new WeakSet(); // those whose answer comes too late to be shown
  let word = null; // the one among them that changes something
  let left = 0; // when the page was left for another one

  const LEAVING = 5000; // a download leaves the page where it is
  const isLeaving = () => Date.now() - left < LEAVING;
  const leave = (when) => {
    left = when;
    document.documentElement.toggleAttribute("data-leaving", when > 0);
  };
  const markAwaited = () => {
    for (const part of document.querySelectorAll("[aria-busy]")) part.removeAttribute("aria-busy");
    for (const part of awaited.values()) part.setAttribute("aria-busy", "true");
  };

  document.addEventListener("htmx:beforeRequest", (event) => {
    const { elt, xhr, target, requestConfig } = event.detail;
    const changes = requestConfig.verb !== "get";
    // Ignore polling requests.
    if (!changes && elt === target) return;
    // A request that changes data is never cancelled: its answer shows the result and the next row.
    if (word) {
      event.preventDefault();
      return;
    }
    for (const [older, part] of awaited) {
      if (!part.contains(target) && !target.contains(part)) continue;
      overtaken.add(older);
      awaited.delete(older);
    }
    awaited.set(xhr, target);
    if (changes) word = xhr;
    markAwaited();
    // Comes after the answer was swapped in, and also when there was none.
    xhr.addEventListener("loadend", () => {
      awaited.delete(xhr);
      if (word === xhr) word = null;
      markAwaited();
      // If the reader moved to another row meanwhile, load that row. A failed request is not repeated.
      if (xhr.status >= 200 && xhr.status < 400) show();
    });
  });

  // Where there is no room beside the list, a row's link opens its page: htmx never sees the click.
  document.addEventListener(
    "click",
    (event) => {
      const shown = document.querySelector("[data-shown]");
      if (shown && !seen(shown) && event.target.closest?.("[data-opens]")) event.stopPropagation();
    },
    true,
  );
  // There the next row is shown from its beginning, wherever in the last one somebody tapped.
  let byHand = false;
  document.addEventListener("pointerdown", () => (byHand = true), true);
  const reveal = (swapped) => {
    const part = swapped.matches("[data-shown]") ? swapped : swapped.querySelector("[data-shown]");
    if (byHand && seen(part) && part.getBoundingClientRect().top < 0) part.scrollIntoView({ block: "start" });
  };

  // What somebody writes stays, and so does the place where they write, when the part around it is replaced.
  const list = () => document.querySelector("[data-scroll]");
  let before = { writing: null, kept: [], scrolled: 0 };
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, target, requestConfig } = event.detail;
    if (overtaken.has(xhr)) {
      event.preventDefault();
      return;
    }
    const active = document.activeElement;
    const writes = field(active) && active.type !== "checkbox";
    before = {
      writing: writes ? { id: active.id, start: active.selectionStart, end: active.selectionEnd } : null,
      kept: [...target.querySelectorAll("[data-keep]")].map((one) => ({ id: one.id, value: one.value, checked: one.checked, chosen: one.checked && !one.defaultChecked })),
      scrolled: list()?.scrollTop ?? 0,
    };
    // Remove the message of the previous request.
    if (requestConfig.verb !== "get") document.querySelector("main > .flash")?.remove();
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    const { writing, kept, scrolled } = before;
    if (list()) list().scrollTop = scrolled;
    // Text written for a choice that is gone is not kept for another choice.
    const isLost = kept.some(({ id, checked }) => checked && !document.getElementById(id));
    for (const { id, value, chosen } of kept) {
      const again = document.getElementById(id);
      if (again?.type === "radio") again.checked ||= chosen;
      else if (again && !isLost) again.value = value;
    }
    if (!writing) {
      event.target.querySelector("[data-focus]")?.focus();
      reveal(event.target);
      return;
    }
    const again = writing.id && document.getElementById(writing.id);
    if (!again) return;
    again.focus({ preventScroll: true });
    // Only texts have a selection.
    if (typeof writing.start === "number") again.setSelectionRange(writing.start, writing.end);
  });

  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    if (isLeaving()) event.preventDefault();
    else leave(Date.now());
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (!link.hasAttribute("download") && !link.hasAttribute("target") && !link.getAttribute("href").includes("#")) leave(Date.now());
  });
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) leave(0);
  });

  // A part that is about one row acts on no other, even if that row's own part never came.
  const isOfCurrent = (element) => {
    const item = element.closest("[data-item]")?.dataset.item;
    const current = document.querySelector("[data-row][data-current]")?.dataset.item;
    return item === undefined || current === undefined || item === current;
  };
  const press = (element) => {
    if (!seen(element)) return false;
    if (field(element)) element.focus();
    else if (!isLeaving() && awaited.size === 0 && isOfCurrent(element)) element.click();
    return true;
  };

  // Rows: j and k move, Enter opens. The row in focus stays marked while a part of the page is swapped.
  const rows = () => [...document.querySelectorAll("[data-row]")].filter(seen);
  const move = (by) => {
    const all = rows();
    if (all.length === 0) return false;
    if (word || isLeaving()) return true;
    const focused = all.findIndex((row) => row.contains(document.activeElement));
    const at = focused < 0 ? all.findIndex((row) => row.hasAttribute("data-current")) : focused;
    const next = all[Math.min(all.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
    if (!next.hasAttribute("tabindex")) next.tabIndex = -1;
    next.focus();
    next.scrollIntoView({ block: "nearest" });
    if (next.querySelector("[data-opens]")) mark(next);
    show();
    return true;
  };

  // The row whose part is shown stays marked when only that part is swapped.
  const mark = (row) => {
    for (const other of document.querySelectorAll("[data-current]")) {
      other.removeAttribute("data-current");
      other.removeAttribute("aria-current");
    }
    row.setAttribute("data-current", "");
    row.setAttribute("aria-current", "true");
  };
  document.addEventListener("click", (event) => {
    const row = event.target.closest?.("[data-opens]")?.closest("[data-row]");
    if (row && !word) mark(row);
  });

  // Shows the part of the current row. One at a time is asked for, so that a key held down asks for the first and the last.
  const show = () => {
    const row = document.querySelector("[data-row][data-current]");
    const shown = document.querySelector("[data-shown]");
    const isShown = row?.dataset.item === shown?.dataset.item;
    if (row && !isShown && seen(shown) && awaited.size === 0) row.querySelector("[data-opens]")?.click();
  };

  // A menu of the header closes when somebody clicks beside it.
  const closeMenus = (inside) => {
    for (const menu of document.querySelectorAll("details.switcher[open]")) if (!menu.contains(inside)) menu.open = false;
  };
  document.addEventListener("click", (event) => closeMenus(event.target));

  let going = 0;
  document.addEventListener("keydown", (event) => {
    byHand = false;
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const active = document.activeElement;
    if (event.key === "Escape") {
      // It also stops a page from being loaded.
      leave(0);
      closeMenus(null);
      if (field(active)) active.blur();
      return;
    }
    if (field(active) && active.type !== "checkbox" && active.type !== "radio") return;
    let done = false;
    if (going && Date.now() - going < 1500) {
      going = 0;
      done = press(find("data-go", event.key));
    } else if (event.key === "g") {
      going = Date.now();
      done = true;
    } else if (event.key === "j" || event.key === "k") {
      done = move(event.key === "j" ? 1 : -1);
    } else if (event.key === "Enter" && active && active.hasAttribute("data-row")) {
      done = press(active.querySelector("a[href]"));
    } else if (event.key === "/") {
      done = press(document.getElementById("search"));
    } else if (event.key === "f") {
      done = press(document.querySelector("[data-search]"));
    } else if (event.key.length === 1) {
      // Ignore key repeat for buttons.
      const pressed = find("data-key", event.key);
      done = event.repeat && pressed ? true : press(pressed);
    }
    if (done) event.preventDefault();
  });

  // A link like /sign-in#TOKEN fills the field: what is behind # is never sent to a server or written to a log.
  const token = document.querySelector("input[data-from-hash]");
  if (token && location.hash.length > 1) {
    const told = location.hash.slice(1);
    try {
      token.value = decodeURIComponent(told);
    } catch {
      // A stray percent sign is a part of what somebody copied.
      token.value = told;
    }
    history.replaceState(null, "", location.pathname + location.search);
    token.form.querySelector("button").focus();
  }

  // A slider and its number say the same.
  document.addEventListener("input", (event) => {
    const twin = event.target.getAttribute && event.target.getAttribute("data-twin");
    const other = twin && document.getElementById(twin);
    if (other && other.value !== event.target.value) other.value = event.target.value;
  });

  // "All of these": one box for the rows of a table.
  document.addEventListener("change", (event) => {
    if (!event.target.hasAttribute("data-all")) return;
    for (const box of event.target.form.querySelectorAll("input[type=checkbox][name=item]")) box.checked = event.target.checked;
  });
})();
