package bowsprit_test

import (
	"context"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit"
)

// A program starts its own control plane. With DataDir instead of Ephemeral it keeps the stored objects.
func ExampleNew() {
	server, err := bowsprit.New(bowsprit.Config{Ephemeral: true})
	if err != nil {
		log.Fatal(err) // names the wrong setting
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1) // Run's result, read once
	go func() { ended <- server.Run(ctx) }()
	select {
	case <-server.Ready():
	case err := <-ended:
		log.Fatal(err)
	}

	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		log.Fatal(err)
	}
	namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, ns := range namespaces.Items {
		fmt.Println(ns.Name, ns.Status.Phase)
	}

	stop()
	fmt.Println("stopped:", <-ended)
	// Output:
	// default Active
	// kube-node-lease Active
	// kube-public Active
	// kube-system Active
	// stopped: <nil>
}
