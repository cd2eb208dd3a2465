// Shows a visitor an arm and tells the reward, through a service of banditto (docs/service.md). Node 18 or newer:
//   TOKEN=bdt_... node examples/service.mjs
import { randomUUID } from "node:crypto";

const { SERVICE = "http://127.0.0.1:8642", EXPERIMENT = "demo", TOKEN } = process.env;
const PASSING = [408, 429, 502, 503, 504]; // what may work a moment later

// A step may be sent again, as often as it takes: nothing is done twice.
async function step(name, body, key = randomUUID()) {
  const headers = { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json", "Idempotency-Key": key };
  const request = { method: "POST", headers, body: JSON.stringify(body) };
  for (let attempt = 1; ; attempt += 1) {
    const answer = await fetch(`${SERVICE}/v1/experiments/${EXPERIMENT}/${name}`, request)
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch((error) => ({ status: 503, text: `${error}` })); // nobody answered
    if (answer.status < 300) return JSON.parse(answer.text);
    if (attempt === 6 || !PASSING.includes(answer.status)) throw new Error(`${answer.status}: ${answer.text}`);
    await new Promise((resolve) => setTimeout(resolve, 50 * 2 ** attempt)); // milliseconds
  }
}

const visit = await step("ask", { unit: "visitor-7" }); // the same ticket whenever this visitor comes
const [ticket] = visit.tickets;
console.log(`show ${(ticket ?? visit.fallback).arm_name}`); // the fallback if there is no ticket now
if (ticket) console.log(await step("tell", { rewards: [{ ticket: ticket.id, reward: 1 }] }));

const key = "mail of 3 May"; // a request without a unit has a key: the same key gets the same tickets
const mail = await step("ask", { n: 2 }, key);
console.log(mail.tickets.map((one) => `${one.id} ${one.arm_name}`).join(", "));
