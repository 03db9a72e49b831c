// A Kubernetes API server for tests, in a process that ends with this one.

import {execFile, spawn} from 'node:child_process';
import {closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync} from 'node:fs';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';
import {createInterface} from 'node:readline';

import {findBinary} from './binary.js';
import {readCredentials, writeKubeconfig} from './kubeconfig.js';

export {findBinary};

// SHARED is the variable by which global-setup.js names its server to the workers of a test runner.
const SHARED = 'BOWSPRIT_SHARED_SERVER';

// BowspritError is the error of a server that does not start, and of a refused request or command. status is the code
// of the response to a request.
export class BowspritError extends Error {
  constructor(message, status) {
    super(message);
    this.name = 'BowspritError';
    this.status = status;
  }
}

// Server is a server without a data directory, on a free port of 127.0.0.1.
export class Server {
  #options;
  #process;
  #directory;
  #data;
  #admin;
  #ended;
  #stopping;
  #files = 0;

  constructor(options = {}) {
    this.#options = {timeout: 60_000, args: [], install: [], ...options};
  }

  // start starts a server, which answers and has everything installed.
  static async start(options) {
    return await new Server(options).start();
  }

  // shared returns the server of global-setup.js. Only the global teardown stops it.
  static shared() {
    const text = process.env[SHARED];
    if (!text) throw new BowspritError('there is no shared server: add bowsprit/global-setup to the runner');
    const {data, log} = JSON.parse(text);
    const server = new Server();
    server.#options.binary = findBinary();
    server.#makeDirectory();
    server.#connect(data);
    server.logFile = log;
    return server;
  }

  // share names the server to the child processes of this one.
  share() {
    process.env[SHARED] = JSON.stringify({data: this.#data, log: this.logFile});
  }

  get running() {
    return this.#process !== undefined && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  async start() {
    if (this.#directory) throw new BowspritError('the server has been started already');
    this.#options.binary = findBinary(this.#options.binary);
    this.#makeDirectory();
    try {
      this.#connect(await this.#launch());
      if (this.#options.install.length > 0) await this.install(...this.#options.install);
    } catch (error) {
      await this.stop();
      throw error;
    }
    return this;
  }

  #makeDirectory() {
    this.#directory = mkdtempSync(path.join(os.tmpdir(), 'bowsprit-node-'));
    process.once('exit', this.#exit);
  }

  #exit = () => {
    this.#process?.kill();
    rmSync(this.#directory, {recursive: true, force: true});
  };

  // launch returns the server's data directory once the server is ready.
  async #launch() {
    const {args, binary, simulate, timeout} = this.#options;
    const words = ['serve', '--ephemeral', '--secure-port=0', '--stop-with-stdin', ...simulation(simulate), ...args];
    this.logFile = path.join(this.#directory, 'log');
    const log = openSync(this.logFile, 'w', 0o600);
    const {KUBECONFIG: _, ...env} = process.env;
    // the end of standard input stops the server, also if this process is killed; Ctrl-C is for this process alone
    this.#process = spawn(binary, words, {
      stdio: ['pipe', 'pipe', log],
      env: {...env, TMPDIR: this.#directory},
      detached: true,
    });
    closeSync(log);
    this.#ended = new Promise((resolve) => this.#process.once('close', resolve).once('error', resolve));
    this.#process.stdin.on('error', () => {}); // the server has ended
    let data;
    let timer;
    const ready = new Promise((resolve) => {
      createInterface({input: this.#process.stdout}).on('line', (line) => {
        const found = /^\s+export KUBECONFIG=(.+)/.exec(line);
        if (found) data = path.dirname(unquote(found[1]));
        if (line.startsWith('Stop with')) resolve('ready');
      });
      this.#ended.then(() => resolve('ended'));
      timer = setTimeout(resolve, timeout, `is not ready after ${timeout} ms`);
    });
    const result = await ready;
    clearTimeout(timer);
    if (result !== 'ready') {
      throw new BowspritError(`${[binary, ...words].join(' ')} ${result}:\n${this.log()}`);
    }
    for (const handle of [this.#process, this.#process.stdin, this.#process.stdout]) {
      handle.unref(); // a test that does not stop the server ends, and the server with it
    }
    return data;
  }

  #connect(data) {
    this.#data = data;
    this.#admin = readCredentials(readFileSync(path.join(data, 'kubeconfig'), 'utf8'));
    this.url = this.#admin.server;
    this.kubeconfig = writeKubeconfig(path.join(this.#directory, 'kubeconfig'), this.#admin);
  }

  // stop stops the server and removes its files. A stopped server stays stopped.
  stop() {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop() {
    if (this.running) {
      this.#process.ref();
      this.#process.stdin.end();
      this.#process.kill();
      const timer = setTimeout(() => this.#process.kill('SIGKILL'), this.#options.timeout);
      await this.#ended;
      clearTimeout(timer);
    }
    process.removeListener('exit', this.#exit);
    if (this.#directory) rmSync(this.#directory, {recursive: true, force: true});
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.stop();
  }

  // log returns the server's log, from a position of logSize on.
  log(since = 0) {
    try {
      return readFileSync(this.logFile).subarray(since).toString();
    } catch {
      return ''; // stopped, or not started
    }
  }

  logSize() {
    return this.logFile ? (statSync(this.logFile, {throwIfNoEntry: false})?.size ?? 0) : 0;
  }

  // install applies files, and all YAML and JSON files of directories. It waits until definitions are served.
  async install(...paths) {
    await this.#run(['import', ...paths.map(String), `--kubeconfig=${this.kubeconfig}`]);
  }

  // kubectl returns the output of the built-in kubectl.
  async kubectl(args, {input, kubeconfig = this.kubeconfig} = {}) {
    return await this.#run(['kubectl', ...args], {input, kubeconfig});
  }

  // user returns the kubeconfig of a user. Without a binding the user has no permissions.
  async user(name, {groups = [], namespace} = {}) {
    const words = ['kubeconfig', `--user=${name}`, `--data-dir=${this.#data}`];
    const text = await this.#run([...words, ...groups.map((group) => `--group=${group}`)]);
    return writeKubeconfig(this.#file('user'), readCredentials(text), namespace);
  }

  // namespace creates a namespace with a unique name.
  async namespace(prefix = 'test') {
    const made = await this.request('POST', '/api/v1/namespaces', {metadata: {generateName: `${prefix}-`}});
    const name = made.metadata.name;
    return new Namespace(this, name, writeKubeconfig(this.#file('namespace'), this.#admin, name));
  }

  // request sends a request as the administrator, and returns the decoded response.
  async request(method, target, body) {
    const {authority, certificate, key} = this.#admin;
    const decode = (text) => Buffer.from(text, 'base64');
    const {status, text} = await new Promise((resolve, reject) => {
      const sent = https.request(new URL(target, this.url), {
        method,
        ca: decode(authority),
        cert: decode(certificate),
        key: decode(key),
        headers: {accept: 'application/json', 'content-type': 'application/json'},
        timeout: this.#options.timeout,
      });
      sent.on('response', (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part) => (text += part));
        response.on('end', () => resolve({status: response.statusCode, text})).on('error', reject);
      });
      sent.on('timeout', () => sent.destroy(new Error('the server does not answer in time'))).on('error', reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
    if (status >= 400) throw new BowspritError(`${method} ${target}: ${status} ${message(text)}`, status);
    return JSON.parse(text);
  }

  // wait reads an object until condition(object) is true, and returns it. A missing object is waited for.
  async wait(target, condition, {timeout = this.#options.timeout} = {}) {
    const end = performance.now() + timeout;
    for (let last = 'it does not exist'; ; await new Promise((resolve) => setTimeout(resolve, 20))) {
      try {
        const found = await this.request('GET', target);
        if (condition(found)) return found;
        last = JSON.stringify(found.status ?? found);
      } catch (error) {
        if (error.status !== 404) throw error;
      }
      if (performance.now() > end) throw new BowspritError(`${target} does not have the condition in time: ${last}`);
    }
  }

  #file(name) {
    return path.join(this.#directory, `${name}-${++this.#files}`);
  }

  #run(words, {input, kubeconfig} = {}) {
    if (!this.#directory) throw new BowspritError('the server is not started');
    const env = kubeconfig ? {...process.env, KUBECONFIG: kubeconfig} : process.env;
    return new Promise((resolve, reject) => {
      const child = execFile(this.#options.binary, words, {env, maxBuffer: 1 << 28}, (error, output, errors) => {
        if (error) reject(new BowspritError(`bowsprit ${words.join(' ')}: ${errors || output || error.message}`));
        else resolve(output);
      });
      child.stdin.on('error', () => {}); // the program did not read it
      child.stdin.end(input ?? '');
    });
  }
}

// Namespace is a namespace of a server, and a kubeconfig of the administrator with this namespace.
export class Namespace {
  constructor(server, name, kubeconfig) {
    Object.assign(this, {server, name, kubeconfig});
  }

  // install applies files. Objects without a namespace get this one.
  async install(...paths) {
    await this.kubectl(['apply', '--server-side', ...paths.map((file) => `--filename=${file}`)]);
  }

  async kubectl(args, {input} = {}) {
    return await this.server.kubectl(args, {input, kubeconfig: this.kubeconfig});
  }

  // user returns the kubeconfig of a user in this namespace, with a cluster role such as "edit" there.
  async user(name, {groups, role} = {}) {
    if (role) {
      await this.kubectl(['create', 'rolebinding', `${name}-${role}`, `--clusterrole=${role}`, `--user=${name}`]);
    }
    return await this.server.user(name, {groups, namespace: this.name});
  }

  // delete deletes the namespace. A test may have deleted it already.
  async delete() {
    await this.server.request('DELETE', `/api/v1/namespaces/${this.name}`).catch((error) => {
      if (error.status !== 404 && error.status !== 409) throw error;
    });
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.delete();
  }
}

function simulation(settings) {
  if (!settings) return [];
  if (settings === true) settings = {nodes: 1};
  if (typeof settings !== 'string') {
    settings = Object.entries(settings).map(([key, value]) => `${key}=${value}`).join(',');
  }
  return [`--simulate=${settings}`];
}

function message(text) {
  try {
    return JSON.parse(text).message ?? text;
  } catch {
    return text;
  }
}

// unquote returns a word that is quoted for a shell.
function unquote(word) {
  return word.startsWith("'") ? word.slice(1, -1).replaceAll("'\\''", "'") : word;
}
