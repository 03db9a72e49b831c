// Command adapter is a server of custom and external metrics: the sample of sigs.k8s.io/custom-metrics-apiserver with
// its provider and library unmodified. The sample accepts metrics only on port 8080; this program uses a free port,
// which it prints.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/emicklei/go-restful/v3"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/cmd"
	"sigs.k8s.io/custom-metrics-apiserver/test-adapter/provider"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "adapter:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	adapter := &cmd.AdapterBase{Name: "adapter"}
	if err := adapter.Flags().Parse(os.Args); err != nil {
		return err
	}
	client, err := adapter.DynamicClient()
	if err != nil {
		return err
	}
	mapper, err := adapter.RESTMapper()
	if err != nil {
		return err
	}
	metrics, writer := provider.NewFakeProvider(client, mapper)
	adapter.WithCustomMetrics(metrics)
	adapter.WithExternalMetrics(metrics)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	container := restful.NewContainer()
	container.Add(writer)
	go func() { _ = (&http.Server{Handler: container, ReadHeaderTimeout: time.Second}).Serve(listener) }()
	fmt.Printf("metrics are taken at %s\n", listener.Addr())
	return adapter.Run(ctx)
}
