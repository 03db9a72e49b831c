// Package proxy implements "bowsprit proxy": kubectl proxy, which adds the user's credentials to plain HTTP requests of
// clients on this machine, and a SOCKS5 proxy for clients with their own credentials.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/proxy"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
)

// flags are the flags of kubectl proxy with its defaults, the flags that select the server, and --socks5.
type flags struct {
	server                                               connect.Flags
	www, wwwPrefix, apiPrefix                            string
	acceptPaths, rejectPaths, acceptHosts, rejectMethods string
	acceptOrigins                                        string
	address, unixSocket, socks5                          string
	port                                                 int
	disableFilter, appendServerPath                      bool
	keepalive                                            time.Duration
}

// Command returns "bowsprit proxy".
func Command() *cobra.Command {
	o := &flags{}
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Let clients on this machine reach the server by plain HTTP or SOCKS5",
		Long: `Let clients on this machine reach the server. The proxy adds the credentials of the kubeconfig to the requests of plain
HTTP clients (curl, a browser, a script), like kubectl proxy, with the same flags and filter. Every process that can open
the port acts as this user, so the proxy listens on this machine only, unless --address is set. It refuses web pages of
other origins, and serves the pages of each pod or service at a separate host, which has no access to the API.

With --socks5 it is also a SOCKS5 proxy, for clients with their own credentials: kubectl and client-go use it by
proxy-url in a kubeconfig or HTTPS_PROXY in the environment. It connects to the server of the kubeconfig only, under the
server's own address and as kubernetes.default.svc.`,
		Example: `  bowsprit proxy                        # then: curl http://localhost:8001/api/v1/namespaces
  bowsprit proxy --port=0               # on a free port, which it prints
  bowsprit proxy --www=./site           # also the files of a directory below /static/
  bowsprit proxy --socks5=1080          # then: HTTPS_PROXY=socks5://localhost:1080 kubectl get namespaces`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(cmd.ErrOrStderr()); err != nil {
				return exit.Usage(err)
			}
			server, err := o.server.Write(cmd, connect.CarriesData) // clients may write through it
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.run(ctx, server.Config, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.bind(cmd.Flags())
	return cmd
}

func (o *flags) bind(f *pflag.FlagSet) {
	o.server.Bind(f)
	f.StringVarP(&o.www, "www", "w", "", "also serve the files of this directory")
	f.StringVarP(&o.wwwPrefix, "www-prefix", "P", "/static/", "path prefix of the files of --www")
	f.StringVar(&o.apiPrefix, "api-prefix", "/", "path prefix of the API")
	f.StringVar(&o.acceptPaths, "accept-paths", proxy.DefaultPathAcceptRE, "paths to allow, regular expressions")
	f.StringVar(&o.rejectPaths, "reject-paths", proxy.DefaultPathRejectRE,
		"paths to refuse, even if --accept-paths matches them")
	f.StringVar(&o.acceptHosts, "accept-hosts", proxy.DefaultHostAcceptRE,
		"allowed Host headers, regular expressions")
	f.StringVar(&o.acceptOrigins, "accept-origins", "",
		"further origins of web pages that may act as this user, regular expressions")
	f.StringVar(&o.rejectMethods, "reject-methods", proxy.DefaultMethodRejectRE,
		"methods to refuse, regular expressions, as in POST,PUT,PATCH")
	f.IntVarP(&o.port, "port", "p", defaultPort, "port to listen on, 0 for a free one")
	f.StringVar(&o.address, "address", "127.0.0.1", "IP address to listen on")
	f.StringVarP(&o.unixSocket, "unix-socket", "u", "", "Unix socket to listen on instead of a port")
	f.StringVar(&o.socks5, "socks5", "", "also run a SOCKS5 proxy, on [ADDRESS:]PORT (default: none)")
	f.BoolVar(&o.disableFilter, "disable-filter", false,
		"allow every request: any page in a browser on this machine can then act as this user")
	f.DurationVar(&o.keepalive, "keepalive", 0, "keep-alive period of idle connections, 0 for the default")
	f.BoolVar(&o.appendServerPath, "append-server-path", false, "prepend the path of the kubeconfig's server to each path")
}

// defaultPort is kubectl's.
const defaultPort = 8001

func (o *flags) run(ctx context.Context, config *rest.Config, out, log io.Writer) error {
	handler, err := o.handler(config, log)
	if err != nil {
		return err
	}
	listener, err := o.listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	if o.socks5 != "" {
		stop, err := o.serveSOCKS(ctx, config, out, log)
		if err != nil {
			return err
		}
		defer stop()
	}
	if err := connect.CheckAnswers(ctx, config); err != nil {
		return err
	}
	fmt.Fprintf(out, "Starting to serve on %s\n", listener.Addr())
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 1 << 20,
	}
	defer context.AfterFunc(ctx, func() { server.Close() })() // watches would not end by themselves
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// complete checks the flags and normalizes prefixes for comparison.
func (o *flags) complete(log io.Writer) error {
	for _, prefix := range []struct {
		flag  string
		value *string
	}{{"www-prefix", &o.wwwPrefix}, {"api-prefix", &o.apiPrefix}} {
		if !strings.HasPrefix(*prefix.value, "/") {
			return fmt.Errorf("--%s %q is not a path: it must begin with /", prefix.flag, *prefix.value)
		}
		if !strings.HasSuffix(*prefix.value, "/") {
			*prefix.value += "/"
		}
	}
	switch info, err := os.Stat(o.www); {
	case o.unixSocket != "" && o.port != defaultPort:
		return errors.New("--unix-socket and --port are mutually exclusive: set one of them")
	case o.port < 0 || o.port > 65535:
		return fmt.Errorf("--port %d is not a port: use 1 to 65535, or 0 for a free one", o.port)
	case o.www == "":
	case err != nil:
		return fmt.Errorf("--www: %w", err)
	case !info.IsDir():
		return fmt.Errorf("--www %s is not a directory", o.www)
	case o.wwwPrefix == o.apiPrefix:
		return fmt.Errorf("--www-prefix and --api-prefix are both %s: change one of them", o.apiPrefix)
	}
	if o.disableFilter && o.unixSocket == "" {
		fmt.Fprintln(log, "bowsprit: --disable-filter: any page in a browser on this machine can act as this user")
	}
	return nil
}

// handler serves the API, and files if there are to be any.
func (o *flags) handler(config *rest.Config, log io.Writer) (http.Handler, error) {
	filter, guard, err := o.filter()
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err == nil && !o.appendServerPath && strings.Trim(target.Path, "/") != "" {
		fmt.Fprintf(log, "bowsprit: the kubeconfig's server has the path %s, which requests do not get without "+
			"--append-server-path\n", target.Path)
	}
	api, err := proxy.NewProxyHandler(o.apiPrefix, filter, config, o.keepalive, o.appendServerPath)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	if guard != nil {
		api = guard.pods.apart(api)
	}
	mux.Handle(o.apiPrefix, api)
	if o.www != "" {
		mux.Handle(o.wwwPrefix, http.StripPrefix(o.wwwPrefix, http.FileServer(http.Dir(o.www))))
	}
	if guard != nil {
		guard.next = mux
		return guard, nil
	}
	return mux, nil
}

// filter returns the filter of paths and methods, and the guard that keeps web pages from acting as the user. Both are
// nil if --disable-filter switches them off.
func (o *flags) filter() (*proxy.FilterServer, *guard, error) {
	if o.disableFilter {
		return nil, nil, nil
	}
	f := &proxy.FilterServer{AcceptHosts: []*regexp.Regexp{regexp.MustCompile("")}} // the guard checks the host
	g := &guard{pods: newPods(o.apiPrefix)}
	for _, list := range []struct {
		flag, text string
		to         *[]*regexp.Regexp
	}{
		{"accept-paths", o.acceptPaths, &f.AcceptPaths}, {"reject-paths", o.rejectPaths, &f.RejectPaths},
		{"accept-hosts", o.acceptHosts, &g.hosts}, {"reject-methods", o.rejectMethods, &f.RejectMethods},
		{"accept-origins", o.acceptOrigins, &g.origins},
	} {
		var err error
		if *list.to, err = proxy.MakeRegexpArray(list.text); err != nil {
			return nil, nil, fmt.Errorf("--%s %q: %w", list.flag, list.text, err)
		}
	}
	return f, g, nil
}

func (o *flags) listen() (net.Listener, error) {
	if o.unixSocket != "" {
		listener, err := new(proxy.Server).ListenUnix(o.unixSocket) // for this user alone
		if err != nil {
			return nil, fmt.Errorf("--unix-socket: %w", err)
		}
		return listener, nil
	}
	return listenTCP("port", net.JoinHostPort(o.address, strconv.Itoa(o.port)))
}

// listenTCP listens on the flag's address.
func listenTCP(flag, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use by another process: stop it, or choose another port with --%s "+
			"(0 picks a free one)", address, flag)
	}
	return listener, err
}
