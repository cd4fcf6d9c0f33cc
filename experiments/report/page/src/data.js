// The document that epocast wrote into the page: rows of results by column, and what belongs to them.

const data = JSON.parse(document.getElementById("data").textContent);

export const settings = data.settings;
export const studies = data.studies;
export const timelines = data.timelines;
export const memoryOfPasses = data.memory_of_passes;
export const details = data.details;

/// Columns in the order of the document: {name, title, kind, unit, factor}. A shown number is the row's number / factor.
export const columns = data.columns;
const byName = new Map(columns.map((column) => [column.name, column]));
export const column = (name) => byName.get(name);
export const hasColumn = (name) => byName.has(name);

/// Rows are numbers: 0 .. rowCount - 1.
export const rowCount = data.row_count;
export const rows = Array.from({ length: rowCount }, (_, row) => row);
export const value = (row, name) => (name in data.rows ? data.rows[name][row] : null);
export const studyOf = (row) => studies[data.rows.study_number[row]];
export const failed = (row) => value(row, "error") !== null;

/// Axes of all studies, each once, and of a row.
export const axes = [...new Set(studies.flatMap((study) => study.axes))];
export const axesOf = (row) => studyOf(row).axes;

export const isNumeric = (name) => {
  const of = column(name);
  return of !== undefined && of.kind === "number";
};

/// The row's number in the unit of the column's heading.
export const scaled = (row, name) => {
  const number = value(row, name);
  return typeof number === "number" ? number / column(name).factor : null;
};

/// "total [d]".
export const heading = (name) => {
  const { title, unit } = column(name);
  return unit === "" ? title : `${title} [${unit}]`;
};

/// Four digits at least, none that say nothing.
export const digits = (number) => {
  if (number === 0 || !Number.isFinite(number)) return String(number);
  const size = Math.abs(number);
  if (size >= 1e9 || size < 1e-4) return number.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e");
  if (Number.isInteger(number) || size >= 1000) return Math.round(number).toLocaleString("en-US");
  return String(Number(number.toPrecision(4)));
};

/// What stands in a table's cell.
export const shown = (row, name) => {
  const raw = value(row, name);
  if (raw === null || raw === undefined) return "–";
  if (typeof raw === "number") return digits(raw / column(name).factor);
  if (typeof raw === "boolean") return raw ? "yes" : "no";
  return Array.isArray(raw) ? raw.join("; ") || "–" : raw;
};

/// With its unit: "4.659 d".
export const quantity = (row, name) => {
  const text = shown(row, name);
  const { unit } = column(name);
  return text === "–" || unit === "" ? text : `${text} ${unit}`;
};

/// A name of a row among those of its study.
export const label = (row) => axesOf(row).map((axis) => shown(row, axis)).join(", ") || studyOf(row).name;

/// Distinct values of rows, in the order of the rows.
export const distinct = (some, name) => [...new Set(some.map((row) => value(row, name)))];

/// Whether not all rows have the same.
export const varies = (name) => {
  const first = JSON.stringify(value(0, name));
  return rows.some((row) => JSON.stringify(value(row, name)) !== first);
};
