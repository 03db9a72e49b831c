// Make the packages to publish: node pack.js DIRECTORY PLATFORM-ARCH=PROGRAM... PLATFORM and ARCH are node's names, such
// as linux-x64. DIRECTORY gets a package with the program for each platform, and the package bowsprit, which depends on
// them: npm installs the one for its platform. "npm publish DIRECTORY/NAME" publishes one.

import {chmodSync, copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync} from 'node:fs';
import path from 'node:path';

const [directory, ...programs] = process.argv.slice(2);
if (programs.length === 0) {
  console.error('usage: node pack.js DIRECTORY PLATFORM-ARCH=PROGRAM...');
  process.exit(2);
}
const here = import.meta.dirname;
const {devDependencies, scripts, ...main} = JSON.parse(readFileSync(path.join(here, 'package.json'), 'utf8'));
main.optionalDependencies = {};
for (const word of programs) {
  const [, platform, arch, program] = /^(\w+)-(\w+)=(.+)$/.exec(word);
  const name = `bowsprit-${platform}-${arch}`;
  const description = `The program of the package bowsprit for ${platform} on ${arch}`;
  const {version, license, repository} = main;
  write(name, {name, version, description, license, repository, os: [platform], cpu: [arch], files: ['bin']});
  const target = path.join(directory, name, 'bin', 'bowsprit');
  mkdirSync(path.dirname(target), {recursive: true});
  copyFileSync(program, target);
  chmodSync(target, 0o755);
  main.optionalDependencies[name] = version;
}
write('bowsprit', main);
for (const file of readdirSync(here)) {
  if (/\.(js|d\.ts|md)$/.test(file) && file !== 'pack.js') {
    copyFileSync(path.join(here, file), path.join(directory, 'bowsprit', file));
  }
}

function write(name, content) {
  mkdirSync(path.join(directory, name), {recursive: true});
  writeFileSync(path.join(directory, name, 'package.json'), JSON.stringify(content, null, 2) + '\n');
}
