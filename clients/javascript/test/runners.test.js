// The helpers, in each runner: two files of tests, each with a server, or all with one.

import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync} from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';
import {promisify} from 'node:util';

const root = path.join(import.meta.dirname, '..');

const suites = {
  vitest: {
    head: "import {test} from 'vitest'; import {useServer} from 'bowsprit/vitest';",
    command: ['node_modules/vitest/vitest.mjs', 'run', '--root=.'],
    setup: ['vitest.config.js', "export default {test: {globalSetup: 'bowsprit/global-setup'}};"],
  },
  jest: {
    head: "import {useServer} from 'bowsprit/jest';",
    command: ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--rootDir=.', '--maxWorkers=2'],
    setup: ['jest.config.js', "export default {transform: {}, globalSetup: 'bowsprit/global-setup', " +
      "globalTeardown: 'bowsprit/global-teardown'};"],
    plain: ['jest.config.js', 'export default {transform: {}};'],
  },
  node: {
    head: "import {test} from 'node:test'; import {useServer} from 'bowsprit/node';",
    command: ['--test'],
  },
};

for (const [runner, suite] of Object.entries(suites)) {
  for (const shared of suite.setup ? [false, true] : [false]) {
    test(`${runner}, ${shared ? 'one server for all' : 'a server for each file'}`, async () => {
      const directory = mkdtempSync(path.join(root, '.test-'));
      try {
        mkdirSync(path.join(directory, 'seen'));
        mkdirSync(path.join(directory, 'node_modules'));
        symlinkSync(root, path.join(directory, 'node_modules', 'bowsprit'));
        writeFileSync(path.join(directory, 'package.json'), '{"type": "module"}');
        const [file, text] = (shared ? suite.setup : suite.plain) ?? [];
        if (file) writeFileSync(path.join(directory, file), text);
        for (const name of ['one', 'two']) {
          writeFileSync(path.join(directory, `${name}.test.js`), `${suite.head}
            import {writeFileSync} from 'node:fs';
            const k8s = useServer({shared: ${shared}});
            for (const n of ['a', 'b']) {
              test(n, async () => {
                await k8s.namespace.kubectl(['create', 'configmap', 'web']);
                const seen = {url: k8s.server.url, namespace: k8s.namespace.name};
                writeFileSync('seen/' + ${JSON.stringify(name)} + n, JSON.stringify(seen));
              });
            }`);
        }
        const words = suite.command.map((word) => (word.startsWith('node_modules') ? path.join(root, word) : word));
        const {NODE_TEST_CONTEXT: _, ...env} = process.env;
        await promisify(execFile)(process.execPath, words, {cwd: directory, env}).catch((error) => {
          throw new Error(`${error.message}\n${error.stdout}\n${error.stderr}`);
        });
        const seen = readdirSync(path.join(directory, 'seen'))
          .map((name) => JSON.parse(readFileSync(path.join(directory, 'seen', name), 'utf8')));
        assert.equal(new Set(seen.map(({url}) => url)).size, shared ? 1 : 2);
        assert.equal(new Set(seen.map(({url, namespace}) => `${url} ${namespace}`)).size, 4);
      } finally {
        rmSync(directory, {recursive: true});
      }
    });
  }
}
