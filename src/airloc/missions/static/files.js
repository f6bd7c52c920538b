// Files and text of the form: outlines in GeoJSON and KML as corners, and pictures in base64.

const MAX_OUTLINE = 5_000_000;
const MAX_PICTURE = 18_000_000;
const MAX_CORNERS = 2000;

// Read the corners of the one polygon in a file, as text.
export async function readOutline(file) {
  const polygons = await readPolygons(file);
  if (polygons.length !== 1) throw new Error(`The outline ${file.name} has ${polygons.length} polygons. Export exactly one.`);
  return polygons[0].map(({ lat, lon }) => `${lat},${lon}`).join(" ");
}

// Read all polygons in a file, as lists of corners.
export async function readPolygons(file) {
  if (file.size > MAX_OUTLINE) throw new Error(`The file ${file.name} is larger than ${MAX_OUTLINE / 1e6} MB. Simplify it first.`);
  const text = await file.text();
  const polygons = /\.kml$/i.test(file.name) ? kmlPolygons(text, file.name) : jsonPolygons(text, file.name);
  return polygons.map(([outer = [], ...holes]) => {
    if (holes.length) throw new Error(`A polygon of ${file.name} has a hole. Export it without holes.`);
    const corners = closesItself(outer) ? outer.slice(0, -1) : outer;
    if (corners.length > MAX_CORNERS) throw new Error(`A polygon of ${file.name} has more than ${MAX_CORNERS} corners. Simplify it first.`);
    if (!corners.every(([lon, lat]) => Math.abs(lat) <= 90 && Math.abs(lon) <= 180)) throw new Error(`A polygon of ${file.name} has no valid coordinates. Export it in WGS 84.`);
    return corners.map(([lon, lat]) => ({ lat, lon }));
  });
}

// Read a GeoJSON file as it is.
export async function readJson(file) {
  if (file.size > MAX_OUTLINE) throw new Error(`The file ${file.name} is larger than ${MAX_OUTLINE / 1e6} MB. Simplify it first.`);
  try {
    return JSON.parse(await file.text());
  } catch {
    throw new Error(`The file ${file.name} is not GeoJSON. Export it again as GeoJSON.`);
  }
}

function closesItself(ring) {
  const [first, last] = [ring[0], ring.at(-1)];
  return ring.length > 1 && first[0] === last[0] && first[1] === last[1];
}

function jsonPolygons(text, name) {
  const polygons = [];
  const visit = (node, depth) => {
    if (node === null || typeof node !== "object" || depth > 32) return;
    if (node.type === "Polygon") polygons.push(node.coordinates);
    else if (node.type === "MultiPolygon") polygons.push(...node.coordinates);
    else for (const part of [node.geometry, ...(node.features ?? []), ...(node.geometries ?? [])]) visit(part, depth + 1);
  };
  try {
    visit(JSON.parse(text), 0);
    return polygons.map((rings) => rings.map((ring) => ring.map(([lon, lat]) => [Number(lon), Number(lat)])));
  } catch {
    throw new Error(`The file ${name} is not GeoJSON. Export it again as GeoJSON or KML.`);
  }
}

function kmlPolygons(text, name) {
  const root = new DOMParser().parseFromString(text, "application/xml");
  if (root.querySelector("parsererror")) throw new Error(`The file ${name} is not KML. Export it again as KML, not KMZ.`);
  const rings = (polygon, kind) => [...polygon.getElementsByTagNameNS("*", kind)].flatMap((boundary) => [...boundary.getElementsByTagNameNS("*", "coordinates")])
    .map((ring) => ring.textContent.trim().split(/\s+/).map((triple) => triple.split(",").slice(0, 2).map(Number)));
  return [...root.getElementsByTagNameNS("*", "Polygon")].map((polygon) => [...rings(polygon, "outerBoundaryIs"), ...rings(polygon, "innerBoundaryIs")]);
}

// Parse "lat,lon lat,lon ...", also with a space after a comma as the page shows positions; the server checks the outline itself.
export function readCorners(text) {
  return text.trim().replace(/\s*,\s*/g, ",").split(/\s+/).map((pair) => {
    const parts = pair.split(",");
    const [lat, lon] = parts.map(Number);
    if (parts.length !== 2 || parts.includes("") || !Number.isFinite(lat) || !Number.isFinite(lon)) throw new Error(`"${pair.slice(0, 40)}" is not a latitude and a longitude. Write 59.3570,15.0010.`);
    return { lat, lon };
  });
}

export async function toBase64(file, most = MAX_PICTURE) {
  if (file.size > most) throw new Error(`The file ${file.name} is larger than ${most / 1e6} MB. Reduce it first.`);
  const url = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(new Error(`The file ${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
  return url.slice(url.indexOf(",") + 1);
}
