// Sliders beside the fields of a plan: prices and the curve follow while one drags.
"use strict";

const form = document.getElementById("plan");
const place = document.getElementById("prices");

function query() {
  const fields = new URLSearchParams(new FormData(form));
  for (const name of [...fields.keys()]) if (name === "form_key") fields.delete(name);
  return fields.toString();
}

// a slider moves over 0 to 1; fields hold what people read
const sliders = [...form.querySelectorAll("input[type=range]")].map((slider) => {
  const field = document.getElementById(slider.dataset.for);
  const low = Number(slider.min), high = Number(slider.max), curved = slider.dataset.scale === "log";
  const whole = Number(slider.step) === 1;
  slider.min = 0; slider.max = 1; slider.step = whole ? 1 / (high - low) : 0.002;
  const place = (value) => curved ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  const value = (place) => curved ? low * (high / low) ** place : low + place * (high - low);
  const follow = () => {
    const number = Number(field.value);
    if (field.value !== "" && number > 0) slider.value = Math.min(1, Math.max(0, place(number)));
  };
  follow();
  field.addEventListener("input", () => { follow(); soon(); });
  slider.addEventListener("input", () => {
    const number = value(Number(slider.value));
    const rounded = whole ? Math.round(number) : Number(number.toPrecision(2));
    field.value = rounded >= 1000 ? String(Math.round(rounded)) : String(rounded);
    soon();
  });
  return slider;
});

let timer = null, busy = false, again = false;
function soon() { clearTimeout(timer); timer = setTimeout(refresh, 40); }

async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  do {
    again = false;
    const asked = query();
    try {
      const answer = await fetch(`${place.dataset.prices}?${asked}`);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      place.replaceChildren(...page.body.childNodes);
    } catch {
      place.textContent = "The service does not answer.";
    }
  } while (again);
  busy = false;
}

document.getElementById("same").addEventListener("change", refresh);
