// A WAMP client by hand, so that the example needs no library. Applications use Autobahn|JS or another client.

const HELLO = 1, WELCOME = 2, ERROR = 8, SUBSCRIBE = 32, SUBSCRIBED = 33, EVENT = 36, CALL = 48, RESULT = 50;
const element = (id) => document.getElementById(id);
const TASKS_MAX = 20;

const socket = new WebSocket(`ws://${location.host}/ws`, "wamp.2.json");
const send = (...message) => socket.send(JSON.stringify(message));
let request = 0;
const call = (method, kwargs) => send(CALL, ++request, {}, `com.example.stock.${method}`, [], kwargs);

// Celery's workers publish one event, or a list of some.
function showTasks(events) {
  for (const { type, uuid, result } of events) {
    const line = document.createElement("li");
    line.textContent = [type, result ?? uuid].join(": ");
    element("tasks").prepend(line);
  }
  while (element("tasks").children.length > TASKS_MAX) element("tasks").lastChild.remove();
}

socket.onopen = () => send(HELLO, "realm1", { roles: { caller: {}, subscriber: {} } });
socket.onclose = () => {
  element("state").textContent = "not connected";
  element("take").disabled = true;
};
socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  switch (message[0]) {
    case WELCOME:
      send(SUBSCRIBE, ++request, { match: "prefix" }, "com.example.tasks.");
      break;
    case SUBSCRIBED:
      element("state").textContent = "connected";
      element("take").disabled = false;
      call("count", { item: "tea" });
      break;
    case EVENT:
      showTasks([message[4]?.[0] ?? message[5]].flat());
      break;
    case RESULT:
      element("stock").textContent = message[3][0];
      break;
    case ERROR:
      element("state").textContent = [message[4], ...(message[5] ?? [])].join(": ");
  }
};
element("take").onclick = () => call("take", { item: "tea", number: 1 });
