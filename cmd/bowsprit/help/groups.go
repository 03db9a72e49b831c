// Package help divides the help of commands into groups: the commands of the root, and the flags of commands with many.
package help

import (
	"github.com/spf13/cobra"
)

// groups are the groups of commands, in the order of the root's help.
var groups = []struct {
	id, title string
	commands  []string
}{
	{"start", "Start and stop servers:", []string{"up", "down", "list", "logs", "serve"}},
	{"use", "Use a server:", []string{"demo", "kubectl", "kubeconfig", "mcp", "proxy", "user", "token"}},
	{"find", "Find causes:", []string{"status", "doctor", "why-denied", "why-stuck"}},
	{"data", "Save and move data:", []string{"backup", "restore", "snapshot", "export", "import"}},
	{"develop", "Develop and test:", []string{"crd", "convert", "envtest", "extension", "run"}},
	{"parts", "Run single parts, with their own flags:", []string{"etcd", "kube-apiserver", "konnectivity-agent",
		"konnectivity-server"}},
	{"program", "This program:", []string{"completion", "config", "docs", "help", "uninstall", "version"}},
}

// Group assigns the commands below root to groups.
func Group(root *cobra.Command) {
	of := map[string]string{}
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, name := range g.commands {
			of[name] = g.id
		}
	}
	for _, cmd := range root.Commands() {
		cmd.GroupID = of[cmd.Name()]
	}
	root.SetHelpCommandGroupID(of["help"])
	root.SetCompletionCommandGroupID(of["completion"])
}
