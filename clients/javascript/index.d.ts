export interface Options {
  /** The program (default: the variable BOWSPRIT, the platform's package, or bowsprit in PATH). */
  binary?: string;
  /** Run controllers, and simulate nodes and pods, with settings such as {nodes: 3}. */
  simulate?: boolean | string | Record<string, string | number>;
  /** Files and directories with definitions and other objects. */
  install?: string[];
  /** Further arguments of "bowsprit serve". */
  args?: string[];
  /** The bound of the start and of requests in milliseconds (default: 60000). */
  timeout?: number;
}

/** A server that does not start, or a refused request or command. */
export class BowspritError extends Error {
  /** The code of the response to a request. */
  readonly status?: number;
}

/** A server without a data directory, on a free port of 127.0.0.1. It ends with this process. */
export class Server implements AsyncDisposable {
  constructor(options?: Options);
  static start(options?: Options): Promise<Server>;
  /** The server of bowsprit/global-setup. */
  static shared(): Server;
  readonly url: string;
  readonly kubeconfig: string;
  readonly running: boolean;
  start(): Promise<this>;
  stop(): Promise<void>;
  share(): void;
  install(...paths: string[]): Promise<void>;
  kubectl(args: string[], options?: {input?: string; kubeconfig?: string}): Promise<string>;
  user(name: string, options?: {groups?: string[]; namespace?: string}): Promise<string>;
  namespace(prefix?: string): Promise<Namespace>;
  request(method: string, path: string, body?: unknown): Promise<any>;
  wait(path: string, condition: (object: any) => boolean, options?: {timeout?: number}): Promise<any>;
  log(since?: number): string;
  logSize(): number;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A namespace of a server, and a kubeconfig of the administrator with this namespace. */
export class Namespace implements AsyncDisposable {
  readonly server: Server;
  readonly name: string;
  readonly kubeconfig: string;
  install(...paths: string[]): Promise<void>;
  kubectl(args: string[], options?: {input?: string}): Promise<string>;
  user(name: string, options?: {groups?: string[]; role?: string}): Promise<string>;
  delete(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export function findBinary(given?: string): string;
