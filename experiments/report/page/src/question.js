// The question that the page answers: the least of what, under which conditions. As `epocast plan` asks it.

import { axesOf, failed, hasColumn, isNumeric, rows, settings, studies, value } from "./data.js";

export const objectives = [
  ["cost", "cost"],
  ["total_s", "time"],
  ["energy_j", "energy"],
  ["co2_kg", "CO2"],
  ["time_to_target_s", "time to target"],
].filter(([name]) => hasColumn(name) && isNumeric(name));

/// `under_s`, `budget`: null for none. `study`: a number, null for all.
export const question = { ...settings, study: studies.length > 1 ? 0 : null };
if (!objectives.some(([name]) => name === question.minimise)) question.minimise = objectives.length ? objectives[0][0] : null;

const listeners = [];
/// Calls `listener` now, and whenever the question is another.
export const onQuestion = (listener) => {
  listeners.push(listener);
  listener();
};
export const ask = (change) => {
  Object.assign(question, change);
  for (const listener of listeners) listener();
};

export const inMemory = (row) => !question.fits || value(row, "fits_memory") !== false;

export const meets = (row) => {
  if (failed(row) || question.minimise === null || value(row, question.minimise) === null) return false;
  if (question.under_s !== null && !(value(row, "total_s") <= question.under_s)) return false;
  if (question.budget !== null && !(value(row, "cost") <= question.budget)) return false;
  return inMemory(row);
};

export const less = (a, b) => value(a, question.minimise) - value(b, question.minimise) || a - b;

/// Rows of the study that is looked at.
export const considered = () => rows.filter((row) => question.study === null || value(row, "study_number") === question.study);

/// Rows that meet the conditions, best first.
export const ranking = () => considered().filter(meets).sort(less);

/// For each axis of the best: the best that chooses otherwise, null if none meets the conditions.
export const alternatives = (ranked) =>
  axesOf(ranked[0]).map((axis) => ({
    axis,
    row: ranked.find((row) => value(row, axis) !== value(ranked[0], axis)) ?? null,
  }));

/// Rows that no other beats in both columns; in the order of the first.
export const front = (some, x, y) => {
  const sorted = some
    .filter((row) => value(row, x) !== null && value(row, y) !== null)
    .sort((a, b) => value(a, x) - value(b, x) || value(a, y) - value(b, y));
  let best = Infinity;
  return sorted.filter((row) => value(row, y) < best && ((best = value(row, y)), true));
};
