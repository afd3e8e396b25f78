// Shows the values of a figure under the pointer. Each figure has them as JSON, see results/picture.py.
(() => {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const short = number => String(Number(number.toPrecision(4)));
  const near = (values, of) => values.reduce((best, value, place) =>
    Math.abs(of(value)) < Math.abs(of(values[best])) ? place : best, 0);

  function line(text, hue) {
    const row = document.createElement("div");
    if (hue !== undefined) {
      const dot = document.createElement("i");
      dot.style.background = `var(--c${hue})`;
      row.append(dot);
    }
    row.append(text);
    return row;
  }

  // Returns what to show at a place of the SVG, as rows and the x of a vertical line, or nothing.
  function found({box: [left, top, right, bottom], x, y, series, bars, cells}, at) {
    if (at.x < left - 2 || at.x > right + 2 || at.y < top - 2 || at.y > bottom + 2) return null;
    const scale = ([, low, high, log], first, last) => value => first + (last - first) *
      (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
    const toX = scale(x, left, right), toY = scale(y, bottom, top);
    if (cells) {
      const column = Math.floor((at.x - left) / (right - left) * cells.columns.length);
      const row = Math.floor((at.y - top) / (bottom - top) * cells.rows.length);
      const number = cells.numbers[row]?.[column];
      if (number === undefined || number === null) return null;
      return {rows: [line(`${cells.rows[row]}, ${cells.columns[column]}`), line(`${short(number)} ${cells.unit}`)]};
    }
    const dots = series.filter(one => one[4]).flatMap(([label, hue, xs, ys]) =>
      xs.map((value, place) => [Math.hypot(toX(value) - at.x, toY(ys[place]) - at.y), label, hue, value, ys[place]]));
    if (dots.length) {
      const [apart, label, hue, dotX, dotY] = dots.reduce((best, dot) => dot[0] < best[0] ? dot : best);
      if (apart > 12) return null;
      return {rows: [line(label || y[0], hue), line(`${x[0]} ${short(dotX)}`), line(`${y[0]} ${short(dotY)}`)]};
    }
    const hit = bars.find(([x0, y0, x1, y1]) => (toX(x0) - at.x) * (toX(x1) - at.x) <= 0 &&
      (toY(y0) - at.y) * (toY(y1) - at.y) <= 0);
    if (hit) return {rows: [line(hit[4])]};
    const seen = series.filter(one => !one[4]).map(([label, hue, xs, ys]) => {
      const place = near(xs, value => toX(value) - at.x);
      return {label, hue, x: xs[place], y: ys[place], apart: Math.abs(toX(xs[place]) - at.x)};
    }).filter(one => one.apart < Math.max(12, (right - left) / 20));
    if (!seen.length) return null;
    const first = seen.reduce((best, one) => one.apart < best.apart ? one : best);
    seen.sort((one, other) => other.y - one.y);
    const rows = seen.map(one => line(`${one.label || y[0]} ${short(one.y)}`, one.hue));
    return {rows: [line(`${x[0]} ${short(first.x)}`), ...rows], x: toX(first.x), top, bottom};
  }

  const known = new WeakMap();  // the values of each figure that was pointed at
  const guide = document.createElementNS("http://www.w3.org/2000/svg", "path");
  guide.setAttribute("class", "guide");

  function show(event) {
    const holder = event.target.closest?.("[data-values]"), svg = holder?.querySelector("svg");
    if (holder && !known.has(holder)) known.set(holder, JSON.parse(holder.dataset.values));
    const shown = svg && found(known.get(holder),
      new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()));
    tip.hidden = !shown;
    if (!shown || shown.x === undefined) guide.remove();
    if (!shown) return;
    if (shown.x !== undefined) {
      guide.setAttribute("d", `M${shown.x} ${shown.top}V${shown.bottom}`);
      if (guide.parentNode !== svg) svg.append(guide);
    }
    tip.replaceChildren(...shown.rows);
    const {width, height} = tip.getBoundingClientRect(), {clientX, clientY} = event;
    const side = clientX + 14 + width > innerWidth ? clientX - width - 14 : clientX + 14;
    tip.style.left = `${Math.max(4, side)}px`;
    tip.style.top = `${Math.max(4, Math.min(clientY + 14, innerHeight - height - 4))}px`;
  }

  document.addEventListener("pointermove", show);  // of the page, for figures may be replaced
  document.addEventListener("pointerdown", show);
})();
