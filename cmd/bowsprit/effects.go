package main

import (
	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/manual"
)

// effect is the effect of a command on servers.
type effect int

const (
	// none marks a command that contacts no server: it works on files, or prints.
	none effect = iota + 1
	// serves marks a command that runs a server or a part of a server. Its flags name the servers that it contacts.
	serves
	// reads is a command that changes no server. KUBECONFIG may select its server.
	reads
	// writes is a command that changes a server, or lets clients change it.
	writes
	// ofDataDir is a command about the local server of a data directory. KUBECONFIG never redirects it; backups have
	// --kubeconfig for another server.
	ofDataDir
	// writesLocal is a command that changes a local server, and can change no other.
	writesLocal
	// asKubectl follows kubectl's rules.
	asKubectl
)

// effects maps the path of each command below bowsprit to its effect. TestEveryCommand runs each command next to a
// server that no command may reach, and fails for a command that is missing here.
var effects = map[string]effect{
	"backup":              ofDataDir,
	"config check":        none,
	"config print":        none,
	"convert init":        none,
	"convert serve":       none,
	"convert test":        none,
	"crd diff":            reads,
	"crd export":          none,
	"crd lint":            none,
	"demo":                writes,
	"docs":                none,
	"doctor":              ofDataDir,
	"down":                none,
	"envtest":             none,
	"etcd":                serves,
	"export":              reads,
	"extension init":      none,
	"extension install":   writes,
	"import":              writes,
	"konnectivity-agent":  serves,
	"konnectivity-server": serves,
	"kube-apiserver":      serves,
	"kubeconfig":          ofDataDir,
	"kubectl":             asKubectl,
	"list":                none,
	"logs":                none,
	"manual":              none,
	"mcp":                 reads, // and with --allow-apply, as writes
	"proxy":               writes,
	"restore":             ofDataDir,
	"run":                 writes,
	"serve":               serves,
	"snapshot restore":    ofDataDir,
	"snapshot save":       ofDataDir,
	"status":              reads,
	"token create":        writes,
	"token delete":        writes,
	"token generate":      none,
	"token list":          reads,
	"uninstall":           none,
	"up":                  serves,
	"user create":         writesLocal,
	"user delete":         writes,
	"user list":           reads,
	"version":             none,
	"why-denied":          reads,
	"why-stuck":           reads,
}

// rules are the part of connect.Rule that holds for the commands of each effect, for their help.
var rules = map[effect]string{
	reads: `The server is the local one (of --name, of --data-dir, or this user's), unless --context, --kubeconfig or KUBECONFIG selects
another. The current context of ~/.kube/config selects none.`,
	writes: `The server is the local one (of --name, of --data-dir, or this user's), unless --context or --kubeconfig selects another. If
only KUBECONFIG selects another, the command asks first at a terminal, and fails without one. The current context of
~/.kube/config selects none. The command prints the server that it acts on.`,
	ofDataDir: `The server is that of --data-dir, or this user's. KUBECONFIG and contexts select no other.`,
	writesLocal: `The server is the local one: of --data-dir, or this user's. If KUBECONFIG selects another server, the command fails
without --data-dir. The command prints the server that it acts on.`,
}

// explainServers adds the rule by which commands choose their server to their help.
func explainServers(root *cobra.Command) {
	root.Long += "\n\n" + connect.Rule
	for _, cmd := range manual.Tree(root) {
		if rule := rules[effects[pathBelow(root, cmd)]]; rule != "" {
			cmd.Long = manual.Long(cmd) + "\n\n" + rule
		}
	}
}

// pathBelow returns the names of a command and its parents, without the root's name.
func pathBelow(root, cmd *cobra.Command) string {
	if cmd == root {
		return ""
	}
	return cmd.CommandPath()[len(root.Name())+1:]
}
