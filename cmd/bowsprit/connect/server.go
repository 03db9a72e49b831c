package connect

import (
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// Server is the server that a command acts on.
type Server struct {
	Config *rest.Config
	// Namespace is the namespace of the context, or "default".
	Namespace string
	// Context is the name of the context that selected the server, or "".
	Context string
	// DataDir is the data directory of a local server, "" for any other.
	DataDir string
	// Instance is the name of the server's instance, or "".
	Instance string

	by      selection
	flags   string
	kubectl string // the flag by which kubectl selects an instance, or ""
}

// selection is the place that named a server.
type selection int

const (
	byDefault selection = iota // by --data-dir or by nothing: the local server
	byFlag
	byEnvironment
)

// newServer returns the server of a context. Unlike client-go's deferred loader it never falls back to the server of
// the pod that it runs in.
func newServer(config *clientcmdapi.Config, context string) (*Server, error) {
	loader := clientcmd.NewNonInteractiveClientConfig(*config, context, &clientcmd.ConfigOverrides{}, kubectlRules())
	client, err := loader.ClientConfig()
	if err != nil {
		return nil, err
	}
	client.UserAgent = "bowsprit"
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, err
	}
	return &Server{Config: client, Namespace: namespace}, nil
}

// FromFile returns how the server of a kubeconfig's current context is reached.
func FromFile(file string) (*rest.Config, error) {
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, unreadable(file, err)
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, err
	}
	s, err := newServer(config, config.CurrentContext)
	if err != nil {
		return nil, unreadable(file, err)
	}
	return s.Config, nil
}

// Local reports whether the server is the local one.
func (s *Server) Local() bool { return s.DataDir != "" }

// foreignByEnvironment reports whether KUBECONFIG alone selected a server other than the local one.
func (s *Server) foreignByEnvironment() bool { return s.by == byEnvironment && !s.Local() }

// String returns the server's URL and name.
func (s *Server) String() string {
	var names []string
	if s.Context != "" {
		names = append(names, "context "+foreign.Text(s.Context))
	}
	switch {
	case s.Instance != "":
		names = append(names, "local, instance "+s.Instance)
	case s.Local():
		names = append(names, "local, data directory "+foreign.Text(s.DataDir))
	}
	text := URL(s.Config)
	if len(names) > 0 {
		text += " (" + strings.Join(names, "; ") + ")"
	}
	return text
}

// Describe returns the URL and the context's name of the server that the user's kubeconfig selects.
func Describe(config *rest.Config, context string) string {
	return (&Server{Config: config, Context: context}).String()
}

// title is the line that commands print about the server.
func (s *Server) title() string {
	by := ""
	if s.foreignByEnvironment() {
		by = ", selected by KUBECONFIG"
	}
	return "Server: " + s.String() + by
}

// Kubectl returns the beginning of a command line that runs the built-in kubectl with the server, quoted for a shell.
func (s *Server) Kubectl() string {
	switch {
	case s.kubectl != "":
		return "bowsprit kubectl" + s.kubectl
	case s.Instance != "", s.flags == "" && UserHasKubeconfig(): // which kubectl would use
		return "bowsprit kubectl --data-dir=" + Quote(s.DataDir)
	}
	return "bowsprit kubectl" + s.flags
}

// Flags returns the flags by which another command selects the server, each after a space and quoted for a shell. The
// local server of this user needs no flags.
func (s *Server) Flags() string { return s.flags }

// URL returns the URL of a server without a password.
func URL(config *rest.Config) string {
	u, err := url.Parse(config.Host)
	if err != nil {
		return foreign.Text(config.Host)
	}
	return foreign.Text(u.Redacted())
}

// Quote returns a word of a command line for a POSIX shell.
func Quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%,="
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
