// A WAMP client by hand, so that the example needs no library. Applications use Autobahn|JS or another client.

const HELLO = 1, WELCOME = 2, ERROR = 8, SUBSCRIBE = 32, SUBSCRIBED = 33, EVENT = 36, CALL = 48, RESULT = 50;
const element = (id) => document.getElementById(id);
const show = (total) => { element("total").textContent = total; };

const socket = new WebSocket(`ws://${location.host}/ws`, "wamp.2.json");
const send = (...message) => socket.send(JSON.stringify(message));
let request = 0;

socket.onopen = () => send(HELLO, "realm1", { roles: { caller: {}, subscriber: {} } });
socket.onclose = () => {
  element("state").textContent = "not connected";
  element("add").disabled = true;
};
socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  switch (message[0]) {
    case WELCOME:
      send(SUBSCRIBE, ++request, {}, "com.example.total");
      break;
    case SUBSCRIBED:
      element("state").textContent = "connected";
      element("add").disabled = false;
      send(CALL, ++request, {}, "com.example.get_total");
      break;
    case EVENT:
      show(message[4][0]);
      break;
    case RESULT:
      show(message[3][0]);
      break;
    case ERROR:
      element("state").textContent = message[4];
  }
};
element("add").onclick = () => send(CALL, ++request, {}, "com.example.add", [1]);
