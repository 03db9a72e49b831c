package connect

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

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

// Own returns this user's server as Rule does without flags and without KUBECONFIG: the running server, or else the
// server of "bowsprit serve". If several run, the error is ErrSeveral.
func Own() (*Server, error) {
	all, err := instance.List()
	if err != nil {
		return nil, fmt.Errorf("%w; or name a server with --data-dir", err)
	}
	running := instance.Running(all)
	if len(running) == 0 {
		return local(DefaultDataDir())
	}
	var names []string
	served := DefaultDataDir() // of "bowsprit serve", if no instance has it
	for _, i := range running {
		names = append(names, i.Name)
		if i.DataDir == served {
			served = ""
		}
	}
	if served != "" && Answers(served) {
		names = append(names, instance.Default+" (of \"bowsprit serve\")")
	}
	if len(names) > 1 {
		return nil, fmt.Errorf("%w; there are %s", ErrSeveral, strings.Join(names, ", "))
	}
	return ofInstance(running[0])
}

// Answers reports whether the server with a data directory accepts connections.
func Answers(dataDir string) bool {
	cluster := LocalCluster(dataDir)
	return cluster != nil && reach(context.Background(), cluster.Server) == nil
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
	if name := given.Lookup("name"); name.Changed {
		s, err := named(name.Value.String())
		if err == nil {
			*dir = s.DataDir
		}
		return err
	}
	all, err := instance.List()
	if err != nil || len(instance.Running(all)) == 0 {
		return err
	}
	s, err := Own()
	if err == nil {
		*dir = s.DataDir
	}
	return err
}
