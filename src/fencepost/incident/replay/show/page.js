"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const stage = $("stage"), time = $("time"), clock = $("clock");
  const plots = [...stage.querySelectorAll(".plot")];
  const LEAST = 1200;
  let from = 0, to = data.lasts, chosen = data.chosen, drag = null;
  document.documentElement.classList.add("js");

  const hour = (tick) => {
    const minutes = Math.floor((((tick - data.midnight) % 86400) + 86400) % 86400 / 60);
    return `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
  };
  const share = (tick) => (tick - from) / (to - from);
  const clamp = (tick) => Math.max(0, Math.min(data.lasts, tick));

  const parts = plots.filter((plot) => plot.querySelector("svg")).map((plot) => {
    const make = (name) => {
      const each = document.createElement("i");
      each.className = name;
      each.hidden = true;
      plot.append(each);
      return each;
    };
    return { plot, svg: plot.querySelector("svg"), cursor: make("cursor"), hover: make("cursor hover"), brush: make("brush") };
  });
  const words = () => stage.querySelectorAll("[data-t]");

  function put(element, tick) {
    const at = share(tick);
    element.hidden = at < -0.0001 || at > 1.0001;
    element.style.left = `${at * 100}%`;
  }

  function hours() {
    const steps = [300, 600, 900, 1800, 3600, 7200, 14400];
    for (const plot of stage.querySelectorAll(".hours")) {
      const most = Math.max(2, Math.floor(plot.clientWidth / 62));
      const step = steps.find((each) => (to - from) / each <= most) || 14400;
      plot.querySelectorAll(".hour").forEach((each) => each.remove());
      const first = Math.ceil((from - data.midnight) / step) * step + data.midnight;
      for (let tick = first; tick <= to; tick += step) {
        const each = document.createElement("span");
        const at = share(tick);
        each.className = at < 0.03 ? "hour first" : at > 0.97 ? "hour last" : "hour";
        each.textContent = hour(tick);
        each.style.left = `${share(tick) * 100}%`;
        plot.append(each);
      }
    }
  }

  function show(a, b) {
    const width = Math.max(LEAST, Math.min(data.lasts, b - a));
    from = Math.max(0, Math.min(data.lasts - width, a));
    to = from + width;
    for (const { svg } of parts) {
      const box = svg.viewBox.baseVal;
      box.x = from;
      box.width = to - from;
    }
    words().forEach((each) => put(each, Number(each.dataset.t)));
    const all = width >= data.lasts;
    for (const id of ["earlier", "later", "wider", "whole"]) $(id).disabled = all;
    $("nearer").disabled = width <= LEAST;
    $("earlier").disabled ||= from <= 0;
    $("later").disabled ||= to >= data.lasts;
    hours();
    choose(chosen);
  }

  function zoom(factor, around = chosen) {
    const width = (to - from) * factor;
    const middle = around >= from && around <= to ? around : (from + to) / 2;
    const left = middle - (middle - from) * factor;
    show(left, left + width);
  }

  function read(tick) {
    const at = Math.round(clamp(tick) / data.each);
    stage.querySelectorAll(".readings").forEach((list) => {
      list.title = `at ${hour(at * data.each)}`;
      const runs = data.charts[list.dataset.chart];
      list.querySelectorAll("dd").forEach((each) => { each.textContent = runs[Number(each.dataset.run)][at]; });
    });
  }

  function choose(tick) {
    chosen = Math.round(clamp(tick) / data.each) * data.each;
    const said = `${hour(chosen)} ${data.zone}`;
    time.value = String(chosen);
    time.setAttribute("aria-valuetext", said);
    clock.textContent = said;
    document.querySelectorAll(".beliefs .at").forEach((each) => { each.textContent = hour(chosen); });
    parts.forEach(({ cursor }) => put(cursor, chosen));
    read(chosen);
    document.querySelectorAll("[data-part]").forEach((row) => {
      const held = data.parts[Number(row.dataset.part)].filter((each) => each[0] <= chosen).pop();
      const cells = row.querySelectorAll("td");
      cells[0].textContent = held ? held[1] : "–";
      cells[1].textContent = held ? held[2] : "–";
    });
  }

  const under = (plot, event) => {
    const box = plot.getBoundingClientRect();
    return clamp(from + Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * (to - from));
  };
  const still = () => parts.forEach(({ hover, brush }) => { hover.hidden = true; brush.hidden = true; });

  for (const { plot } of parts) {
    plot.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      drag = { plot, tick: under(plot, event), x: event.clientX };
      if (event.pointerType === "mouse") plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointermove", (event) => {
      const tick = under(plot, event);
      parts.forEach(({ hover }) => put(hover, tick));
      read(tick);
      if (drag && event.pointerType === "mouse" && Math.abs(event.clientX - drag.x) > 4) {
        const [a, b] = [drag.tick, tick].sort((one, two) => one - two);
        parts.forEach(({ brush }) => {
          brush.hidden = false;
          brush.style.left = `${share(a) * 100}%`;
          brush.style.width = `${(share(b) - share(a)) * 100}%`;
        });
      }
    });
    plot.addEventListener("pointerup", (event) => {
      if (!drag) return;
      const tick = under(plot, event), begun = drag;
      drag = null;
      still();
      if (event.pointerType === "mouse" && Math.abs(event.clientX - begun.x) > 8) {
        show(Math.min(tick, begun.tick), Math.max(tick, begun.tick));
      } else {
        choose(tick);
      }
    });
    plot.addEventListener("pointercancel", () => { drag = null; still(); });
    plot.addEventListener("pointerleave", () => { if (!drag) { still(); read(chosen); } });
  }

  time.addEventListener("input", () => {
    choose(Number(time.value));
    if (chosen < from || chosen > to) show(chosen - (to - from) / 2, chosen + (to - from) / 2);
  });
  const move = (part) => show(from + part * (to - from), to + part * (to - from));
  $("nearer").addEventListener("click", () => zoom(0.5));
  $("wider").addEventListener("click", () => zoom(2));
  $("whole").addEventListener("click", () => show(0, data.lasts));
  $("earlier").addEventListener("click", () => move(-0.4));
  $("later").addEventListener("click", () => move(0.4));
  stage.addEventListener("keydown", (event) => {
    if (event.target !== stage || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 10 * data.each : data.each;
    const keys = {
      ArrowLeft: () => choose(chosen - step), ArrowRight: () => choose(chosen + step),
      Home: () => choose(0), End: () => choose(data.lasts),
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => show(0, data.lasts), Escape: () => show(0, data.lasts),
      PageUp: () => move(-0.4), PageDown: () => move(0.4),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
    if (chosen < from || chosen > to) show(chosen - (to - from) / 2, chosen + (to - from) / 2);
  });
  document.querySelectorAll("[data-kind]").forEach((box) => box.addEventListener("change", () => {
    document.querySelectorAll(`.values tr.${box.dataset.kind}`).forEach((row) => row.classList.toggle("gone", !box.checked));
  }));
  addEventListener("resize", hours);
  show(0, data.lasts);
})();
