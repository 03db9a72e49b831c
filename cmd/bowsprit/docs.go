package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/files"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/manual"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/site"
	"github.com/bowsprit/bowsprit/docs"
)

func docsCommand() *cobra.Command {
	var write, address string
	cmd := &cobra.Command{
		Use:   "docs",
		Short: "Show the documentation of this version in a browser, or write it as files",
		Long: `Show the documentation of this version in a browser: tasks, reference, explanations, and a search. The program contains
it and needs no network. It includes all commands and flags.`,
		Example: `  bowsprit docs                     # prints the URL; stop with Ctrl-C
  bowsprit docs --address :8080     # for other machines too
  bowsprit docs --write ./site      # static files, for any web server`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pages, err := site.New(docs.Pages, map[string]string{
				"index": startPage, "commands": manual.Markdown(cmd.Root()),
			})
			if err != nil {
				return err
			}
			if write != "" {
				return writeSite(cmd.OutOrStdout(), pages, write)
			}
			return serveSite(cmd, pages, address)
		},
	}
	cmd.Flags().StringVar(&write, "write", "", "write the pages to this directory instead of serving them")
	cmd.Flags().StringVar(&address, "address", "127.0.0.1:0", "address to listen on; port 0 picks a free one")
	return cmd
}

func writeSite(out io.Writer, pages *site.Site, dir string) error {
	to, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	defer to.Close()
	for _, name := range pages.Files() {
		data, err := pages.File(name)
		if err != nil {
			return err
		}
		if err := to.Write(name, data, 0o644); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "%d files are in %s; begin with index.html.\n", len(pages.Files()), dir)
	return err
}

func serveSite(cmd *cobra.Command, pages *site.Site, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--address: %w", err)
	}
	ctx, stop := stopOnSignal(cmd.Context())
	defer stop()
	server := &http.Server{
		Handler: siteHandler(pages), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 64 << 10,
	}
	fmt.Fprintf(cmd.OutOrStdout(), "The documentation is at http://%s/\nStop with Ctrl-C.\n", listener.Addr())
	ended := make(chan error, 1) // one result
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	err = server.Close()
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// siteHandler answers with the pages.
func siteHandler(pages *site.Site) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if name == "" || strings.HasSuffix(name, "/") {
			name += "index.html"
		}
		data, err := pages.File(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			http.NotFound(w, r)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			http.ServeContent(w, r, name, time.Time{}, strings.NewReader(string(data)))
		}
	})
}

// startPage shows Bowsprit at work and links to the next pages.
const startPage = `# Bowsprit

The Kubernetes API, extended by your own kinds, in one program: no cluster, no nodes, etcd inside. kubectl, client-go,
controller-runtime and Helm work with it unchanged.

` + "```" + `
$ bowsprit serve &
Bowsprit is ready at https://127.0.0.1:6443
$ bowsprit demo
demo: 5 created, 0 changed, 0 unchanged, 0 failed.
$ bowsprit kubectl -n demo get crontabs
NAME                 SPEC          REPLICAS   AGE
cleanup              0 */6 * * *   1          2s
my-new-cron-object   * * * * */5   1          2s
nightly-report       30 2 * * *    3          2s
` + "```" + `

- [Quickstart](quickstart.md): a server and a kind of your own, in a minute
- [First steps](first-steps.md): from nothing to a kind of your own
- Tutorials for the chapters of Kubernetes' documentation: [definitions](tutorials/definitions.md),
  [versions](tutorials/versions.md), [conversion rules](tutorials/conversion-rules.md),
  [aggregation and extension servers](tutorials/extension-server.md),
  [several schedulers](tutorials/schedulers.md), [proxies](tutorials/proxies.md),
  [Konnectivity](tutorials/konnectivity.md), [client programs](tutorials/clients.md)
- Tutorials for operators: [users and roles](tutorials/users.md), [three servers](tutorials/replicas.md),
  [backups](tutorials/backup.md), [move from kube-apiserver, and back](tutorials/move.md),
  [test an operator](tutorials/test-an-operator.md)
- [Named servers](instances.md): up, down, list, logs
- [Which server a command uses](which-server.md), on a machine with several
- [Install it](packages.md): packages, the service, the image
- [Settings](settings.md): flags, a file, the environment
- [Operations](operations.md): monitoring and maintenance, [backups](backup.md), [high availability](high-availability.md)
- [Troubleshooting](troubleshooting.md) by message, and the [FAQ](faq.md)
- [Why is it refused?](why.md): find the reason for a denied request
- [All commands and flags](commands.md), [all metrics](metrics.md), [the errors](errors.md) that Kubernetes does not have
- [Differences from Kubernetes](differences.md)
- [The tour](tour.md): one request through the code, in fifteen minutes

The Go API: [bowsprit](go/bowsprit.md) to embed a server, [testserver](go/testserver.md) for tests,
[extension](go/extension.md) for API servers of your own.
`
