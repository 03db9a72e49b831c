package connect

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// Rule is the rule by which commands choose their server, for help texts and the documentation. choose implements it.
const Rule = `Commands use the local server: that of --name or --data-dir, or else this user's running server, of "bowsprit up" or
"bowsprit serve" (BOWSPRIT_DATA_DIR, or the XDG data home). With several running, they need one of these flags. --context
and --kubeconfig select another server. KUBECONFIG alone selects a server for reads; a command that would change that server
asks first at a terminal, and fails without one. The current context of ~/.kube/config selects no server. A command that
changes a server prints the server's name. "bowsprit kubectl" follows kubectl's rules instead.`

// choose selects the server by Rule, without contacting a server.
func (f *Flags) choose() (*Server, error) {
	if err := Check(f.given); err != nil {
		return nil, err
	}
	fromEnvironment := os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != ""
	switch {
	case f.kubeconfig != "":
		return f.ofFiles(byFlag, &clientcmd.ClientConfigLoadingRules{ExplicitPath: f.kubeconfig}, f.kubeconfig)
	case f.context != "":
		return f.ofFiles(byFlag, kubectlRules(), kubectlFiles())
	case f.given.Changed("data-dir"):
		return local(f.dataDir)
	case f.given.Changed("name"):
		return named(f.name)
	case fromEnvironment:
		s, err := f.ofFiles(byEnvironment, kubectlRules(), "KUBECONFIG ("+
			kubectlFiles()+")")
		if err != nil {
			return nil, fmt.Errorf("%w; unset KUBECONFIG to use the local server", err)
		}
		if f.localOnly {
			return f.ownInstead(s)
		}
		return s, nil
	}
	return Own()
}

// ownInstead returns the local server for a command that can use no other, unless KUBECONFIG selects another one: then
// the next command without flags would read from that one.
func (f *Flags) ownInstead(selected *Server) (*Server, error) {
	if selected.Local() {
		return local(selected.DataDir)
	}
	return nil, fmt.Errorf("KUBECONFIG selects %s, and this command needs the certificate authority of a local server: "+
		"name its directory with --data-dir, or unset KUBECONFIG; nothing was changed", selected)
}

// ofFiles returns the server of a context in kubeconfig files. from names the files in errors.
func (f *Flags) ofFiles(by selection, rules *clientcmd.ClientConfigLoadingRules, from string) (*Server, error) {
	config, err := rules.Load()
	if err != nil {
		return nil, unreadable(from, err)
	}
	name := f.context
	if name == "" {
		name = config.CurrentContext
	}
	switch {
	case name == "" && len(config.Contexts) == 0:
		return nil, fmt.Errorf("%s selects no server: it is missing or has no context", from)
	case name == "":
		return nil, fmt.Errorf("%s has no current context: choose one with --context; there are %s", from,
			contextsOf(config))
	case config.Contexts[name] == nil:
		return nil, fmt.Errorf("%s has no context %q: there are %s", from, name, contextsOf(config))
	}
	s, err := newServer(config, name)
	if err != nil {
		return nil, unreadable(fmt.Sprintf("%s, context %q", from, name), err)
	}
	s.by, s.Context = by, name
	if f.kubeconfig != "" {
		s.flags = " --kubeconfig=" + Quote(f.kubeconfig)
	}
	if f.context != "" || by == byEnvironment {
		s.flags += " --context=" + Quote(name)
	}
	if dir := DefaultDataDir(); SameServer(LocalCluster(dir), config.Clusters[config.Contexts[name].Cluster]) {
		s.DataDir = dir
	}
	return s, nil
}

// kubectlRules returns kubectl's rules for finding its files. Reading the files writes nothing.
func kubectlRules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.MigrationRules, rules.WarnIfAllMissing = nil, false
	return rules
}

// kubectlFiles names the files that kubectl reads.
func kubectlFiles() string {
	if files := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); files != "" {
		return files
	}
	return clientcmd.RecommendedHomeFile
}

// contextsOf lists the names of contexts in an error.
func contextsOf(config *clientcmdapi.Config) string {
	const most = 20
	names := slices.Sorted(maps.Keys(config.Contexts))
	for i, name := range names {
		names[i] = foreign.Text(name)
	}
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
