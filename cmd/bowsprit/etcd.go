package main

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

// etcdCommand is the entry in the help; main hands the arguments to etcdmain before this command parses them.
func etcdCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "etcd [FLAGS]",
		Short:              "Run etcd alone, with etcd's own flags",
		DisableFlagParsing: true,
		Run:                func(_ *cobra.Command, args []string) { runEtcd(args) },
	}
}

// runEtcd runs etcd: the main function of its library, which ends the process.
func runEtcd(args []string) {
	endInTime()
	etcdmain.Main(append([]string{"etcd"}, hurried(args, os.LookupEnv)...))
}

// etcdGrace is the time that etcd has to end after a signal.
const etcdGrace = 10 * time.Second

// endInTime ends the process etcdGrace after a signal. Alone, etcd waits two minutes for clients in a handshake.
func endInTime() {
	signals := make(chan os.Signal, 1) // the first one counts
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		time.Sleep(etcdGrace)
		fmt.Fprintln(os.Stderr, "bowsprit: etcd stops without waiting for the remaining clients. Acknowledged writes are on disk.")
		code := 1
		if number, ok := s.(syscall.Signal); ok {
			code = 128 + int(number) // as shells report it
		}
		os.Exit(code)
	}()
}

// hurried adds short election times for a member without peers, unless args set them. The member waits for one election
// before it leads. With etcd's defaults that adds up to a second to the start of every test suite.
func hurried(args []string, env func(string) (string, bool)) []string {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return args // gateway, grpc-proxy
	}
	for _, flag := range []string{"config-file", "discovery", "discovery-endpoints", "discovery-srv",
		"election-timeout", "heartbeat-interval", "initial-cluster"} {
		given := slices.ContainsFunc(args, func(arg string) bool {
			name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			return strings.HasPrefix(arg, "-") && name == flag
		})
		if _, set := env("ETCD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))); given || set {
			return args
		}
	}
	return append([]string{"--heartbeat-interval=20", "--election-timeout=100"}, args...)
}
