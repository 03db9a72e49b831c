// Server, against a real one. The variable BOWSPRIT names the program.

import assert from 'node:assert/strict';
import {execFileSync, spawn} from 'node:child_process';
import {once} from 'node:events';
import {existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {createInterface} from 'node:readline';
import {after, before, describe, test} from 'node:test';

import {AppsV1Api, CoreV1Api, CustomObjectsApi, KubeConfig} from '@kubernetes/client-node';
import {BowspritError, Server, findBinary} from 'bowsprit';

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: ships, singular: ship, kind: Ship}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {masts: {type: integer}}}}}
`;

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
`;

function client(kubeconfig, api) {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  return config.makeApiClient(api);
}

const refused = (code) => (error) => error.code === code;

describe('a server', () => {
  let server;
  let directory;
  before(async () => {
    directory = mkdtempSync(path.join(os.tmpdir(), 'bowsprit-test-'));
    writeFileSync(path.join(directory, 'ships.yaml'), definition);
    writeFileSync(path.join(directory, 'web.yml'), deployment);
    server = await Server.start({simulate: {nodes: 2}, install: [path.join(directory, 'ships.yaml')]});
  });
  after(async () => {
    await server.stop();
    rmSync(directory, {recursive: true});
  });

  test('has custom objects', async () => {
    const sea = await server.namespace('sea');
    assert.match(sea.name, /^sea-/);
    const ships = client(sea.kubeconfig, CustomObjectsApi);
    const at = {group: 'example.com', version: 'v1', namespace: sea.name, plural: 'ships'};
    const body = {apiVersion: 'example.com/v1', kind: 'Ship', metadata: {name: 'a'}, spec: {masts: 3}};
    await ships.createNamespacedCustomObject({...at, body});
    body.spec.masts = 'three';
    await assert.rejects(ships.createNamespacedCustomObject({...at, body}), refused(422));
    assert.match(await sea.kubectl(['get', 'ships']), /^a /m);
  });

  test('runs workloads', async () => {
    const one = await server.namespace();
    await one.install(path.join(directory, 'web.yml'));
    const target = `/apis/apps/v1/namespaces/${one.name}/deployments/web`;
    await server.wait(target, (web) => web.status?.readyReplicas === 2);
    const found = await client(one.kubeconfig, AppsV1Api).readNamespacedDeployment({name: 'web', namespace: one.name});
    assert.equal(found.spec.replicas, 2);
  });

  test('has namespaces that are apart', async () => {
    const [one, two] = await Promise.all([server.namespace(), server.namespace()]);
    await one.kubectl(['apply', '--filename=-'], {input: deployment});
    assert.doesNotMatch(await two.kubectl(['get', 'deployments']), /web/);
    await one.delete();
    await one.delete();
  });

  test('has users', async () => {
    const one = await server.namespace();
    const alice = await one.user('alice', {role: 'view'});
    const core = client(alice, CoreV1Api);
    assert.ok(await core.listNamespacedConfigMap({namespace: one.name}));
    await assert.rejects(core.listNamespacedSecret({namespace: one.name}), refused(403));
    await assert.rejects(core.listNamespacedPod({namespace: 'default'}), refused(403));
    const admin = client(await server.user('bob', {groups: ['system:masters']}), CoreV1Api);
    assert.equal((await admin.listNode()).items.length, 2);
    assert.equal(statSync(alice).mode & 0o077, 0);
  });

  test('has errors that help', async () => {
    await assert.rejects(server.request('GET', '/api/v1/namespaces/absent'), {status: 404, name: 'BowspritError'});
    await assert.rejects(server.wait('/api/v1/namespaces/default', () => false, {timeout: 0}), /the condition in time/);
    await assert.rejects(server.kubectl(['nothing']), /unknown command/);
    await assert.rejects(server.start(), /started already/);
    await assert.rejects(Server.start({args: ['--secure-port=99999']}), /ended:[^]*--secure-port/);
    await assert.rejects(Server.start({install: ['/absent']}), /does not exist/);
    assert.throws(() => Server.shared(), BowspritError);
    assert.throws(() => findBinary('/absent'), /is no program/);
    const {BOWSPRIT, PATH} = process.env;
    try {
      delete process.env.BOWSPRIT;
      process.env.PATH = directory;
      assert.throws(() => findBinary(), /is not installed/);
    } finally {
      Object.assign(process.env, {BOWSPRIT, PATH});
    }
  });
});

test('a server stops', async () => {
  const server = await Server.start();
  const directory = path.dirname(server.kubeconfig);
  assert.ok(server.running && server.log() !== '' && server.logSize() > 0);
  await Promise.all([server.stop(), server.stop()]);
  assert.ok(!server.running && server.log() === '' && !existsSync(directory));
});

// gone reports whether a process has ended.
function gone(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').pop().startsWith('Z');
  } catch {
    return true;
  }
}

for (const how of ['SIGKILL', 'SIGTERM', 'forgotten']) {
  test(`no process outlives its runner: ${how}`, {skip: !existsSync('/proc/self')}, async () => {
    const script = `
      import {Server} from 'bowsprit';
      import {readdirSync, readFileSync} from 'node:fs';
      const server = await Server.start();
      const children = readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8');
      console.log(children.trim());
      if ('${how}' !== 'forgotten') setInterval(() => {}, 1000);
    `;
    const runner = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
      cwd: import.meta.dirname,
    });
    const ended = once(runner, 'exit');
    const [line] = await once(createInterface({input: runner.stdout}), 'line');
    assert.match(line, /^\d+$/);
    if (how !== 'forgotten') {
      assert.ok(!gone(line));
      runner.kill(how);
    }
    await ended;
    while (!gone(line)) await new Promise((resolve) => setTimeout(resolve, 20)); // the runner's own bound ends it
  });
}

test('a package of a platform has its program', () => {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'bowsprit-test-'));
  try {
    const program = path.join(directory, 'program');
    writeFileSync(program, '#!/bin/sh\necho it runs\n');
    const pack = path.join(import.meta.dirname, '..', 'pack.js');
    const name = `${process.platform}-${process.arch}`;
    execFileSync(process.execPath, [pack, path.join(directory, 'node_modules'), `${name}=${program}`, `none-x=${program}`]);
    const main = readFileSync(path.join(directory, 'node_modules', 'bowsprit', 'package.json'), 'utf8');
    const {optionalDependencies, devDependencies} = JSON.parse(main);
    assert.deepEqual(Object.keys(optionalDependencies), [`bowsprit-${name}`, 'bowsprit-none-x']);
    assert.equal(devDependencies, undefined);
    const script = "import {findBinary} from 'bowsprit'; import {execFileSync} from 'node:child_process';" +
      "process.stdout.write(execFileSync(findBinary()));";
    const {BOWSPRIT: _, ...env} = process.env;
    const output = execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
      cwd: directory, env: {...env, PATH: ''},
    });
    assert.equal(output.toString(), 'it runs\n');
  } finally {
    rmSync(directory, {recursive: true});
  }
});
