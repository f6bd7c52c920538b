// Requests to the server: JSON in, JSON out. A refused request throws a Refusal.

export class Refusal extends Error {
  constructor(status, reason, message) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

export async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  const response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  const answer = await response.json();
  if (!response.ok) throw new Refusal(response.status, answer.error, answer.message);
  return answer;
}

// Draw a patch, which arrives as raw RGB bytes in base 64.
export function paint(canvas, pixels, side) {
  const bytes = atob(pixels);
  const image = new ImageData(side, side);
  for (let from = 0, to = 0; from < bytes.length; from += 3, to += 4) {
    image.data[to] = bytes.charCodeAt(from);
    image.data[to + 1] = bytes.charCodeAt(from + 1);
    image.data[to + 2] = bytes.charCodeAt(from + 2);
    image.data[to + 3] = 255;
  }
  canvas.width = side;
  canvas.height = side;
  canvas.getContext("2d").putImageData(image, 0, 0);
}
