// Package connect selects the server for a command, by one rule for all commands (Rule), and returns the connection to
// it.
//
// A command binds Flags and calls Read before it reads from a server and Write before it changes one. Both return the
// selected Server; Write asks for consent where the rule demands it. No other code of the commands reads the user's
// kubeconfig. The types are not safe for concurrent use.
package connect

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
)

// Flags are the flags that select a server.
type Flags struct {
	dataDir, name, kubeconfig, context string
	given                              *pflag.FlagSet // nil in Flags of OfDir
	localOnly                          bool           // the command has --data-dir alone
}

// OfDir selects the local server with a data directory, for a command with --data-dir as its only selecting flag. given
// contains that flag.
func OfDir(dir string, given *pflag.FlagSet) *Flags {
	return &Flags{dataDir: dir, given: given, localOnly: true}
}

// Bind declares the flags.
func (f *Flags) Bind(flags *pflag.FlagSet) {
	f.given = flags
	flags.StringVar(&f.name, "name", "", "use the instance with this name, of \"bowsprit up\"")
	flags.StringVar(&f.dataDir, "data-dir", "",
		"use the local server with this data directory (default: that of this user's server)")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "use the server that this file selects")
	flags.StringVar(&f.context, "context", "", "use the server of this context, of --kubeconfig or of kubectl's files")
}

// Read returns the server that a command reads from. If KUBECONFIG has selected a server other than the local one, Read
// prints that server's name to stderr.
func (f *Flags) Read(cmd *cobra.Command) (*Server, error) {
	s, err := f.choose()
	if err != nil {
		return nil, err
	}
	if s.foreignByEnvironment() {
		fmt.Fprintln(cmd.ErrOrStderr(), s.title())
	}
	return s, s.Running(cmd.Context())
}

// Write returns the server that a command changes, and prints its name: to stdout, or to stderr if stdout carries data.
// If only KUBECONFIG selects a server other than the local one, Write asks the user at a terminal, and fails without a
// terminal.
func (f *Flags) Write(cmd *cobra.Command, stdout Stdout) (*Server, error) {
	s, err := f.choose()
	if err != nil {
		return nil, err
	}
	if s.foreignByEnvironment() {
		if err := f.confirm(cmd, s); err != nil {
			return nil, err
		}
	}
	if !f.localOnly { // a command that also works without the server calls Running itself
		if err := s.Running(cmd.Context()); err != nil {
			return nil, err
		}
	}
	to := cmd.OutOrStdout()
	if stdout == CarriesData {
		to = cmd.ErrOrStderr()
	}
	_, err = fmt.Fprintln(to, s.title())
	return s, err
}

// Stdout is a command's use of its standard output.
type Stdout int

const (
	// ForPeople is text for the user.
	ForPeople Stdout = iota
	// CarriesData is data for a file or another program.
	CarriesData
)

// Clientset returns a client for the server's built-in kinds.
func (s *Server) Clientset() (kubernetes.Interface, error) { return kubernetes.NewForConfig(s.Config) }

// Check returns an error if the flags of a command line contradict each other or select no server. A flag with an empty
// value comes from an unset variable of a script, which does not mean the local server.
func Check(given *pflag.FlagSet) error { return exit.Usage(contradiction(given)) }

func contradiction(given *pflag.FlagSet) error {
	var first string
	for _, name := range []string{"data-dir", "name", "kubeconfig", "context"} {
		switch {
		case !given.Changed(name):
			continue
		case given.Lookup(name).Value.String() == "":
			return fmt.Errorf("--%s is empty: give it a value, or leave it out to use the local server", name)
		case first == "" || first == "kubeconfig":
			first = name // --context selects within --kubeconfig
		default:
			return fmt.Errorf("--%s and --%s both name a server: give one of them", name, first)
		}
	}
	return nil
}

// UserHasKubeconfig reports whether kubectl finds a server by itself: KUBECONFIG is set, or its file has a current
// context.
func UserHasKubeconfig() bool {
	if os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" {
		return true
	}
	config, err := kubectlRules().Load()
	return err != nil || config.CurrentContext != ""
}
