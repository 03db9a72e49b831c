import {writeFileSync} from 'node:fs';

const fields = {
  server: /^\s+server: (\S+)$/m,
  authority: /^\s+certificate-authority-data: (\S+)$/m,
  certificate: /^\s+client-certificate-data: (\S+)$/m,
  key: /^\s+client-key-data: (\S+)$/m,
};

// readCredentials returns the server and the client certificate of a kubeconfig that Bowsprit has written.
export function readCredentials(text) {
  const credentials = {};
  for (const [name, pattern] of Object.entries(fields)) {
    const found = pattern.exec(text);
    if (!found) throw new Error(`the kubeconfig of bowsprit has no ${name}`);
    credentials[name] = found[1].replace(/^["']|["']$/g, '');
  }
  return credentials;
}

// writeKubeconfig writes a kubeconfig with a namespace, readable by this user only. JSON is also YAML.
export function writeKubeconfig(file, {server, authority, certificate, key}, namespace = 'default') {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'bowsprit',
    clusters: [{name: 'bowsprit', cluster: {server, 'certificate-authority-data': authority}}],
    users: [{name: 'bowsprit', user: {'client-certificate-data': certificate, 'client-key-data': key}}],
    contexts: [{name: 'bowsprit', context: {cluster: 'bowsprit', user: 'bowsprit', namespace}}],
  };
  writeFileSync(file, JSON.stringify(config, null, 1), {mode: 0o600});
  return file;
}
