// Command etcd is a member of an etcd cluster for tests. It is etcd's own server without syncs: a test kills a process
// and not the machine.
//
// It prints its client URL when it serves, and runs until SIGTERM or SIGINT.
package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	c := embed.NewConfig()
	var client, peer string
	flag.StringVar(&c.Name, "name", "", "the member's name")
	flag.StringVar(&c.Dir, "data-dir", "", "directory of its data")
	flag.StringVar(&client, "client-url", "", "where clients reach it")
	flag.StringVar(&peer, "peer-url", "", "where other members reach it")
	flag.StringVar(&c.InitialCluster, "initial-cluster", "", "all members, name=peer-url,…")
	flag.Parse()
	if err := run(c, client, peer); err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
}

func run(c *embed.Config, client, peer string) error {
	clients, err := url.Parse(client)
	if err != nil {
		return err
	}
	peers, err := url.Parse(peer)
	if err != nil {
		return err
	}
	c.LogLevel = "fatal"
	c.UnsafeNoFsync = true
	c.TickMs, c.ElectionMs = 50, 500
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{*clients}, []url.URL{*clients}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{*peers}, []url.URL{*peers}

	stop := make(chan os.Signal, 1) // one is enough to stop
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
		fmt.Println(client)
	case err := <-e.Err():
		return err
	case <-stop:
		return nil
	}
	select {
	case err := <-e.Err():
		return err
	case <-stop:
		return nil
	}
}
