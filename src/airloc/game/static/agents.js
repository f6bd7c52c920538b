// Names of the agents for people, and a line about each.

const AGENTS = {
  airloc: ["AiRLoc", "The paper's agent. It has learned by trial and error where to go next."],
  belief: ["The belief searcher", "It keeps a probability for every square and plans ahead."],
  blind: ["The best blind path", "The path that finds most goals without looking."],
  lawnmower: ["The lawnmower", "It sweeps row by row without looking."],
  spiral: ["The spiral", "It circles outwards from the start without looking."],
  random: ["The random walk", "It moves at random."],
  "priv-random": ["The careful random walk", "It moves at random, to new squares inside the area."],
  local: ["The neighbour follower", "It goes where the goal would be if it were next to here."],
  "priv-local": ["The careful neighbour follower", "It goes where the goal would be if it were next to here, to new squares only."],
  "belief-greedy": ["The belief searcher, one step ahead", "It goes to the most promising square next to it."],
  "belief-no-memory": ["The belief searcher without memory", "It uses only the last square that it has seen."],
  "belief-seams": ["The belief searcher, edges only", "It compares only the edges and corners of squares."],
  "belief-textures": ["The belief searcher, textures only", "It compares squares as a whole, without their edges."],
};
const VARIANTS = {
  "no-residual": "no residual", "no-prior": "no prior", "no-sem-seg": "no building outlines", priv: "new squares only",
  xbd: "trained on disasters", research: "research weights",
};

// Return an agent's name and line; an agent that is not known here keeps its name.
export function describe(agent) {
  const base = Object.keys(AGENTS).filter((key) => `${agent}-`.startsWith(`${key}-`)).sort((a, b) => b.length - a.length)[0];
  if (base === undefined) return { name: agent, line: "" };
  const parts = agent.slice(base.length).match(/-(no-[a-z]+(-seg)?|[a-z]+)/g) ?? [];
  const variant = parts.map((part) => VARIANTS[part.slice(1)] ?? part.slice(1)).join(", ");
  const [name, line] = AGENTS[base];
  return { name: variant ? `${name} (${variant})` : name, line };
}
