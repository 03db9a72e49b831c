package aspod

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
)

// settings are the flags of "bowsprit run".
type settings struct {
	server               connect.Flags
	namespace, container string
	asPod                string
	mounts               string
}

// The values of --mounts.
const (
	mountsAuto      = "auto"
	mountsNamespace = "namespace"
	mountsPaths     = "paths"
)

// RunCommand returns "bowsprit run".
func RunCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "run --as-pod WORKLOAD -- PROGRAM [ARGUMENT...]",
		Short: "Run a local program as if it were the pod of a Deployment",
		Long: `Run a program of this machine as if it were the pod of a Deployment, StatefulSet or DaemonSet on a server,
for example the operator that you are changing. The program gets

  - the token of the pod's ServiceAccount, ca.crt and namespace in ` + accountDir + `
  - KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT, POD_NAMESPACE, HOSTNAME, and the container's variables
  - the container's arguments, unless arguments follow PROGRAM
  - the container's volumes with Secrets, ConfigMaps, projected sources and fields of the pod, as files of mode 0600 in
    memory. They follow changes of the objects within seconds; tokens are renewed.

On Linux the files are at the pod's paths, in a mount namespace. Where that is not allowed, and on other systems, they
are below a directory that ` + rootVariable + ` names, and KUBECONFIG leads to the token. The files vanish with the
program.

The command reads the workload, Secrets and ConfigMaps and requests the token with your rights. It changes no object:
scale the workload to 0 if its own pods would do the same work. Readiness, logs and the pod's Service are not provided.
The command ends with the code of the program, or with 128 and the number of the signal that ended the program.`,
		Example: `  bowsprit run --as-pod deployment/manager --namespace system -- ./bin/manager
  bowsprit run --as-pod deployment/manager -n system -- go run ./cmd --leader-elect=false`,
		Args: func(cmd *cobra.Command, args []string) error {
			if guarding() || len(args) > 0 {
				return nil
			}
			return fmt.Errorf("%q takes a program, such as: -- ./manager", cmd.CommandPath())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if guarding() {
				guard()
				return nil
			}
			return s.run(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.asPod, "as-pod", "", "the workload, as in deployment/NAME")
	f.StringVarP(&s.namespace, "namespace", "n", "", "its namespace (default: that of the context)")
	f.StringVarP(&s.container, "container", "c", "", "the container of the pod (default: the only one)")
	f.StringVar(&s.mounts, "mounts", mountsAuto,
		"where the files are: namespace (at the pod's paths), paths (below a directory), auto (the first allowed)")
	s.server.Bind(f)
	return cmd
}

func (s *settings) run(cmd *cobra.Command, line []string) error {
	workload, err := parseTarget(s.asPod)
	if err != nil {
		return exit.Usage(err)
	}
	if !slices.Contains([]string{mountsAuto, mountsNamespace, mountsPaths}, s.mounts) {
		return exit.Usage(fmt.Errorf("--mounts %q is unknown: use auto, namespace or paths", s.mounts))
	}
	if stage() != insideStage && s.mounts != mountsPaths {
		code, err := runInside()
		switch {
		case err == nil:
			return exit.Ended(code)
		case s.mounts == mountsNamespace:
			return fmt.Errorf("mount namespace: %w: use --mounts=paths", err)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "bowsprit: no mount namespace (%v): the files are below $%s\n", err,
			rootVariable)
	}
	r, remove, err := s.makeRoot()
	if err != nil {
		return err
	}
	defer remove()
	server, err := s.server.Write(cmd, connect.CarriesData)
	if err != nil {
		return err
	}
	if s.namespace == "" {
		s.namespace = server.Namespace
	}
	client, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		return err
	}
	p, err := find(cmd.Context(), client, s.namespace, workload, s.container)
	if err != nil {
		return err
	}
	if err := p.reach(server.Config); err != nil {
		return err
	}
	return start(cmd, client, p, r, line)
}

// makeRoot returns where the files of the pod are to be.
func (s *settings) makeRoot() (r root, remove func(), err error) {
	if stage() != insideStage {
		return below()
	}
	r, err = enter()
	if err != nil {
		refuse(err)
	}
	return r, func() {}, nil
}

// reach sets the address and the CA of the API server, from the configuration of the caller.
func (p *pod) reach(config *rest.Config) error {
	u, err := url.Parse(config.Host)
	if err != nil || u.Scheme != "https" || u.Path != "" && u.Path != "/" {
		return fmt.Errorf("a pod reaches the server by https://HOST:PORT, and this is %s: use another address of it",
			connect.URL(config))
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return err
	}
	if len(config.CAData) == 0 {
		return errors.New("the kubeconfig has no certificate authority, which the program needs: add one to it")
	}
	p.host, p.port, p.ca = u.Hostname(), u.Port(), config.CAData
	if p.port == "" {
		p.port = "443"
	}
	return nil
}

// address returns the host and port of the API server.
func (p *pod) address() string { return net.JoinHostPort(p.host, p.port) }

// start writes the files and runs the program until it ends.
func start(cmd *cobra.Command, client kubernetes.Interface, p *pod, r root, line []string) error {
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	received := receive()
	defer received.stop()
	locations, notes, err := p.locations()
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "bowsprit: "+note)
	}
	environment, err := p.environment(ctx, client)
	if err != nil {
		return err
	}
	f := &files{client: client, root: r, notes: cmd.ErrOrStderr(), locations: locations}
	if err := f.fillUnless(ctx, received); err != nil {
		return err
	}
	all := environment.over(os.Environ())
	if r.dir != "" {
		kubeconfig, err := p.writeKubeconfig(r)
		if err != nil {
			return err
		}
		all = append(all, "KUBECONFIG="+kubeconfig, rootVariable+"="+r.dir)
	}
	followed := make(chan struct{})
	go func() { defer close(followed); f.follow(ctx) }()
	code, err := runProgram(p.commandLine(line, environment), all, received)
	stop()
	<-followed
	if err != nil {
		return err
	}
	return exit.Ended(code)
}
