package connect

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/instance"
)

// named returns the server of an instance.
func named(name string) (*Server, error) {
	i, err := instance.Open(name)
	if err != nil {
		return nil, err
	}
	if !i.Exists() {
		if name == instance.Default {
			return local(DefaultDataDir())
		}
		return nil, fmt.Errorf("there is no instance %s: start it with \"bowsprit up %[1]s\"; there are %s", name,
			Instances())
	}
	return ofInstance(i)
}

func ofInstance(i *instance.Instance) (*Server, error) {
	if !Exists(filepath.Join(i.DataDir, "kubeconfig")) {
		return nil, fmt.Errorf("the instance %s does not run: start it with \"bowsprit up %[1]s\"", i.Name)
	}
	s, err := local(i.DataDir)
	if err != nil {
		return nil, err
	}
	s.Instance, s.flags = i.Name, " --name="+i.Name
	if slices.Contains(kubectlRules().GetLoadingPrecedence(), i.Kubeconfig) {
		s.kubectl = " --context=" + i.Context()
	}
	return s, nil
}

// Instances lists the names of this user's instances for an error.
func Instances() string {
	all, _ := instance.List() // an unreadable one cannot be selected
	if len(all) == 0 {
		return "none"
	}
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	return strings.Join(names, ", ")
}

// ErrSeveral is the error of a command that needs a flag, because several servers of this user run.
var ErrSeveral = errors.New("several servers of this user run: add --name=NAME")

// Own returns this user's server as Rule does without flags and without KUBECONFIG.
func Own() (*Server, error) { return own() }

// own returns this user's server: the one that runs, or else the one of "bowsprit serve". If several run, the error is
// ErrSeveral.
func own() (*Server, error) {
	all, err := instance.List()
	if err != nil {
		return nil, fmt.Errorf("%w; or name a server with --data-dir", err)
	}
	var running []*instance.Instance
	var names []string
	served := DefaultDataDir() // of "bowsprit serve", if no instance has it
	for _, i := range all {
		if i.Locked() {
			running, names = append(running, i), append(names, i.Name)
			if i.DataDir == served {
				served = ""
			}
		}
	}
	if len(running) > 0 && served != "" && Answers(served) {
		names = append(names, instance.Default+" (of \"bowsprit serve\")")
	}
	switch len(names) {
	case 0:
		return local(DefaultDataDir())
	case 1:
		return ofInstance(running[0])
	}
	return nil, fmt.Errorf("%w; there are %s", ErrSeveral, strings.Join(names, ", "))
}

// Answers reports whether the server with a data directory accepts connections.
func Answers(dataDir string) bool {
	config, err := clientcmd.LoadFromFile(filepath.Join(dataDir, "kubeconfig"))
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return false
	}
	cluster := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	if cluster == nil {
		return false
	}
	u, err := url.Parse(cluster.Server)
	if err != nil {
		return false
	}
	conn, err := net.DialTimeout("tcp", u.Host, time.Second) // longer than a machine needs to refuse its own connection
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// BindDir declares the flags of a command about the files of a local server: --data-dir and --name.
func BindDir(f *pflag.FlagSet, dir *string) {
	f.StringVar(dir, "data-dir", DefaultDataDir(), "the server's data directory")
	f.String("name", "", "use the data directory of the instance with this name, of \"bowsprit up\"")
}

// Dir sets the data directory of a command with the flags of BindDir: of --name, or of this user's running server.
func Dir(given *pflag.FlagSet, dir *string) error {
	if err := Check(given); err != nil || given.Changed("data-dir") || given.Changed("kubeconfig") {
		return err
	}
	var s *Server
	var err error
	if name := given.Lookup("name"); name != nil && name.Changed {
		s, err = named(name.Value.String())
	} else {
		s, err = running()
	}
	if s != nil && err == nil {
		*dir = s.DataDir
	}
	return err
}

// running is own, or nil if no instance runs.
func running() (*Server, error) {
	all, err := instance.List()
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		if i.Locked() {
			return own()
		}
	}
	return nil, nil
}
