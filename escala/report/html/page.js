"use strict";
(() => {
  const root = document.documentElement;
  root.dataset.scripted = "";
  const page = JSON.parse(document.getElementById("plots").textContent);
  const hover = document.getElementById("hover");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const theme = () => root.dataset.theme || (system.matches ? "dark" : "light");

  // Rows of data travel as lists under one line of field names.
  const expand = (part) => {
    if (Array.isArray(part)) return part.map(expand);
    if (part === null || typeof part !== "object") return part;
    if (part.fields && part.rows) {
      return part.rows.map((row) => Object.fromEntries(part.fields.map((field, at) => [field, row[at]])));
    }
    return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, expand(value)]));
  };

  // Text only: nothing that a name holds is ever read as markup.
  const show = (handler, event, item, value) => {
    if (value === null || value === undefined || value === "") {
      hover.hidden = true;
      return;
    }
    const lines = typeof value === "object" ? Object.entries(value) : [["", value]];
    hover.replaceChildren(...lines.map(([title, text]) => {
      const line = document.createElement("div");
      line.dir = "auto";
      line.textContent = title ? `${title}: ${text}` : String(text);
      return line;
    }));
    hover.hidden = false;
    const room = 12;
    const left = Math.min(event.clientX + room, window.innerWidth - hover.offsetWidth - room);
    const below = event.clientY + room + hover.offsetHeight < window.innerHeight;
    hover.style.left = `${Math.max(0, left)}px`;
    hover.style.top = `${below ? event.clientY + room : Math.max(0, event.clientY - room - hover.offsetHeight)}px`;
  };

  // The renderer is run when the first chart is wanted.
  const renderer = () => {
    if (!window.vegaEmbed) {
      const script = document.createElement("script");
      script.textContent = document.getElementById("renderer").textContent;
      document.head.append(script);
    }
    return window.vegaEmbed;
  };

  const drawn = new Map();
  const views = new Map();
  const draw = async (place) => {
    const as = theme();
    if (drawn.get(place) === as) return;
    drawn.set(place, as);
    try {
      views.get(place)?.finalize();
      const view = await renderer()(place, expand(page.plots[place.dataset.plot]), {
        mode: "vega-lite",
        ast: true,
        renderer: "svg",
        actions: false,
        defaultStyle: false,
        tooltip: show,
        config: page.looks[as],
      });
      views.set(place, view);
      place.dataset.drawn = as;
    } catch (error) {
      place.textContent = page.words.failed + error.message;
    }
  };

  const places = [...document.querySelectorAll(".canvas")];
  for (const place of places) {
    const height = page.plots[place.dataset.plot].height;
    if (typeof height === "number") place.style.minHeight = `${height + 50}px`;
  }
  const near = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
    { rootMargin: "600px" },
  );
  places.forEach((place) => near.observe(place));

  // Where they are few, all are drawn in time, so that the page can be printed and searched.
  const few = 60;
  const drawNext = async () => {
    const next = places.find((place) => !drawn.has(place));
    if (next === undefined) return;
    await draw(next);
    window.requestIdleCallback(drawNext);
  };
  if (places.length <= few) window.addEventListener("load", () => window.requestIdleCallback(drawNext));

  const recolour = () => [...drawn.keys()].forEach(draw);
  system.addEventListener("change", recolour);
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    recolour();
  });

  const keyOf = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.key === undefined ? cell.textContent.trim() : Number(cell.dataset.key);
  };
  const compare = (one, other) => {
    if (typeof one === typeof other) return typeof one === "number" ? one - other : one.localeCompare(other);
    return typeof one === "number" ? -1 : 1;
  };
  const sort = (heading) => {
    const table = heading.closest("table");
    const column = heading.cellIndex;
    const down = heading.getAttribute("aria-sort") === "ascending";
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => [keyOf(row, column), row]);
    // Cells that hold nothing stay last in either direction.
    const known = keyed.filter(([key]) => key !== "");
    const empty = keyed.filter(([key]) => key === "");
    known.sort(([one], [other]) => (down ? compare(other, one) : compare(one, other)));
    body.append(...[...known, ...empty].map(([, row]) => row));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  };
  document.addEventListener("click", (event) => {
    const heading = event.target.closest("thead th");
    if (heading) sort(heading);
  });

  const dataOf = (part, found = []) => {
    if (Array.isArray(part)) part.forEach((one) => dataOf(one, found));
    else if (part && typeof part === "object") {
      if (part.fields && part.rows) found.push(part);
      else Object.values(part).forEach((one) => dataOf(one, found));
    }
    return found;
  };
  const cell = (tag, text) => {
    const made = document.createElement(tag);
    made.textContent = text === null || text === undefined ? "" : String(text);
    return made;
  };
  const tableOf = ({ fields, rows }) => {
    const shown = fields.map((field, at) => [page.words.fields[field], at]).filter(([title]) => title !== undefined);
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    shown.forEach(([title, at]) => {
      const heading = document.createElement("th");
      heading.scope = "col";
      if (rows.every((row) => typeof row[at] !== "number")) heading.className = "text";
      const button = cell("button", title);
      button.type = "button";
      heading.append(button);
      head.append(heading);
    });
    const body = table.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      for (const [, at] of shown) {
        const made = cell("td", row[at]);
        if (typeof row[at] === "number") made.dataset.key = String(row[at]);
        else made.className = "text";
        line.append(made);
      }
    }
    return table;
  };
  for (const details of document.querySelectorAll(".values")) {
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      const keys = ({ fields, rows }) => new Set(rows.map((row) => JSON.stringify([fields, row])));
      const all = dataOf(page.plots[details.dataset.plot]).map((data) => [data, keys(data)]);
      // Largest first: a layer whose rows another one has, too, has nothing to add.
      all.sort(([one], [other]) => other.rows.length - one.rows.length);
      const seen = [];
      for (const [data, rows] of all) {
        const within = (other) => [...rows].every((row) => other.has(row));
        if (seen.some(within)) continue;
        seen.push(rows);
        const wide = document.createElement("div");
        wide.className = "wide";
        wide.tabIndex = 0;
        wide.append(tableOf(data));
        details.append(wide);
      }
    });
  }
})();
