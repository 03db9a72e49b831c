import {accessSync, constants, statSync} from 'node:fs';
import {createRequire} from 'node:module';
import path from 'node:path';

// findBinary returns the program: the given one, else the variable BOWSPRIT, the program of the package for this
// platform, or bowsprit in PATH.
export function findBinary(given) {
  for (const [source, name] of [['binary', given], ['the variable BOWSPRIT', process.env.BOWSPRIT]]) {
    if (!name) continue;
    const found = which(name);
    if (!found) throw new Error(`${source} is ${JSON.stringify(name)}, and that is no program`);
    return found;
  }
  const found = packaged() ?? which('bowsprit');
  if (!found) {
    throw new Error(
      `bowsprit is not installed: install the package bowsprit-${process.platform}-${process.arch}, or set the ` +
        'variable BOWSPRIT to the program, or put it into a directory of PATH',
    );
  }
  return found;
}

// packaged returns the program of an optional dependency, of which npm installs the one for the platform.
function packaged() {
  try {
    return createRequire(import.meta.url).resolve(`bowsprit-${process.platform}-${process.arch}/bin/bowsprit`);
  } catch {
    return undefined;
  }
}

function which(name) {
  const places = name.includes(path.sep) ? [''] : (process.env.PATH ?? '').split(path.delimiter);
  return places.map((place) => path.resolve(place, name)).find(isProgram);
}

function isProgram(file) {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
