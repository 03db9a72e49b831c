package aspod

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
)

// settings are the flags of "bowsprit run".
type settings struct {
	server               connect.Flags
	namespace, container string
	asPod, all           string
	mounts               string
	route                string
	ports                []string
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
		Use:   "run {--as-pod WORKLOAD -- PROGRAM [ARGUMENT...] | --all FILE}",
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

If the server allows it (serve --allow-local-pods) and you may create deployments/localpod, the program also is a Pod
object as long as it runs: Services with its labels lead to the ports of the container on this machine, so the server
calls webhooks and APIServices here; the readiness probe decides about its endpoints; kubectl logs and port-forward
work. The server reaches no other ports, and the route ends with this command.

The command reads the workload, Secrets and ConfigMaps and requests the token with your rights. It changes no other
object: scale the workload to 0 if its own pods would do the same work. It does not restart the program. It ends with
the code of the program, or with 128 and the number of the signal that ended the program.

--all runs several programs. Each line of the file is "NAME: WORKLOAD [FLAG...] -- PROGRAM [ARGUMENT...]" with flags of
this command; lines that begin with # are comments, quotes are as in a shell. Each line of output begins with the name.
When the first program ends, the command ends the others and exits with its code. It passes SIGINT, SIGTERM and SIGHUP
on.`,
		Example: `  bowsprit run --as-pod deployment/manager --namespace system -- ./bin/manager
  bowsprit run --as-pod deployment/manager -n system -- go run ./cmd --leader-elect=false
  bowsprit run --as-pod deployment/manager -n system --port 9443=19443 -- ./bin/manager --webhook-port=19443
  bowsprit run --all Podfile`,
		Args: s.checkArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if guarding() {
				guard()
				return nil
			}
			if s.all != "" {
				return runAll(cmd, s.all)
			}
			return s.run(cmd, args)
		},
	}
	s.bind(cmd.Flags())
	return cmd
}

func (s *settings) bind(f *pflag.FlagSet) {
	f.StringVar(&s.asPod, "as-pod", "", "the workload, as in deployment/NAME")
	f.StringVar(&s.all, "all", "", "a file with several workloads and their programs")
	f.StringVarP(&s.namespace, "namespace", "n", "", "its namespace (default: that of the context)")
	f.StringVarP(&s.container, "container", "c", "", "the container of the pod (default: the only one)")
	f.StringVar(&s.mounts, "mounts", mountsAuto,
		"where the files are: namespace (at the pod's paths), paths (below a directory), auto (the first allowed)")
	f.StringVar(&s.route, "route", routeAuto,
		"whether the server reaches the program: always, never (the program keeps the terminal), auto (if it is allowed)")
	f.StringArrayVar(&s.ports, "port", nil,
		"a further port for the server, as PORT or PORT=LOCAL; the container's ports are there already (repeatable)")
	s.server.Bind(f)
}

// checkArgs checks the arguments of the command.
func (s *settings) checkArgs(cmd *cobra.Command, args []string) error {
	switch {
	case guarding():
		return nil
	case s.all != "" && (len(args) > 0 || s.asPod != "" || s.container != "" || len(s.ports) > 0):
		return errors.New("--all takes the programs, workloads, containers and ports from its file")
	case s.all != "" || len(args) > 0:
		return nil
	}
	return fmt.Errorf("%q takes a program, such as: -- ./manager", cmd.CommandPath())
}

func (s *settings) run(cmd *cobra.Command, line []string) error {
	workload, err := parseTarget(s.asPod)
	if err != nil {
		return exit.Usage(err)
	}
	if !slices.Contains([]string{mountsAuto, mountsNamespace, mountsPaths}, s.mounts) {
		return exit.Usage(fmt.Errorf("--mounts %q is unknown: use auto, namespace or paths", s.mounts))
	}
	if !slices.Contains([]string{routeAuto, routeAlways, routeNever}, s.route) {
		return exit.Usage(fmt.Errorf("--route %q is unknown: use auto, always or never", s.route))
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
	ports, err := parsePorts(p.container, s.ports)
	if err != nil {
		return exit.Usage(err)
	}
	run := &running{cmd: cmd, client: client, config: server.Config, pod: p, root: r, ports: ports}
	return run.start(s.route, line)
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
