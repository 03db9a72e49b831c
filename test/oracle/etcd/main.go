// Command etcd is a small etcd for tests with several servers, or for tests that access it directly. It does not sync
// writes.
//
// It prints its client URL, and runs until SIGTERM or SIGINT.
package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	dir := flag.String("data-dir", "", "directory of the data; made if missing")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintf(os.Stderr, "etcd: %v\n", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	if dir == "" {
		return fmt.Errorf("--data-dir is empty")
	}
	free := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c := embed.NewConfig()
	c.Dir = dir
	c.LogLevel = "error"
	c.UnsafeNoFsync = true
	c.TickMs, c.ElectionMs = 10, 100 // a lone member waits this long for others
	c.ListenClientUrls, c.AdvertiseClientUrls = free, free
	c.ListenPeerUrls, c.AdvertisePeerUrls = free, free
	c.InitialCluster = c.InitialClusterFromName(c.Name)

	stop := make(chan os.Signal, 1) // one is enough to stop
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(2 * time.Minute):
		return fmt.Errorf("not ready after two minutes")
	}
	fmt.Printf("http://%s\n", e.Clients[0].Addr())
	select {
	case <-stop:
		return nil
	case err := <-e.Err():
		return err
	}
}
