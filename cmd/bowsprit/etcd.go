package main

import (
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

// runEtcd is etcd: the main function of its library, which ends the process.
func runEtcd(args []string) { etcdmain.Main(append([]string{"etcd"}, args...)) }
