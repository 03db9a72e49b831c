package bowsprit_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bowsprit/bowsprit"
)

// run starts a server for an example, and returns it with a client and with the function that stops it.
func run(config bowsprit.Config) (server *bowsprit.Server, client *kubernetes.Clientset, stop func()) {
	config.Ephemeral = true
	server, err := bowsprit.New(config)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	select {
	case <-server.Ready():
	case err := <-ended:
		log.Fatal(err)
	}
	client, err = kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		log.Fatal(err)
	}
	return server, client, func() {
		cancel()
		if err := <-ended; err != nil {
			log.Fatal(err)
		}
	}
}

// The administrator's credentials work with every client of Kubernetes.
func ExampleServer_RESTConfig() {
	_, client, stop := run(bowsprit.Config{})
	defer stop()
	version, err := client.Discovery().ServerVersion()
	fmt.Println(version.Major+"."+version.Minor, err)
	// Output: 1.37 <nil>
}

func ExampleServer_Kubeconfig() {
	server, _, stop := run(bowsprit.Config{})
	defer stop()
	file, err := clientcmd.LoadFromFile(server.Kubeconfig())
	fmt.Println(file.CurrentContext, err)
	// Output: bowsprit <nil>
}

func ExampleServer_URL() {
	server, _, stop := run(bowsprit.Config{Listen: bowsprit.ListenConfig{BindAddress: "127.0.0.1"}})
	defer stop()
	fmt.Println(strings.HasPrefix(server.URL(), "https://127.0.0.1:"))
	// Output: true
}

// The embedded etcd has no socket, unless the configuration opens one for etcdctl.
func ExampleServer_EtcdURL() {
	server, _, stop := run(bowsprit.Config{Etcd: bowsprit.EtcdConfig{ListenClientURL: "http://127.0.0.1:0"}})
	defer stop()
	fmt.Println(strings.HasPrefix(server.EtcdURL(), "http://127.0.0.1:"))
	// Output: true
}

// A plugin admits writes with code of this program: a webhook without HTTP.
func ExampleAdmissionPlugin() {
	named := bowsprit.AdmissionPlugin{
		Name: "NamePrefix",
		Validate: func(_ context.Context, r *bowsprit.AdmissionRequest) error {
			if r.Resource.Resource == "configmaps" && r.Operation == "CREATE" && !strings.HasPrefix(r.Name, "app-") {
				return errors.New("names begin with app-")
			}
			return nil
		},
	}
	_, client, stop := run(bowsprit.Config{
		Admission: bowsprit.AdmissionConfig{Plugins: []bowsprit.AdmissionPlugin{named}},
		// The controller makes a ConfigMap of another name in each namespace.
		Controllers: bowsprit.ControllersConfig{Enabled: []string{"*", "-root-ca-certificate-publisher-controller"}},
	})
	defer stop()
	for _, name := range []string{"settings", "app-settings"} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := client.CoreV1().ConfigMaps("default").Create(context.Background(), object, metav1.CreateOptions{})
		fmt.Println(err)
	}
	// Output:
	// configmaps "settings" is forbidden: names begin with app-
	// <nil>
}

// Simulated nodes run pods without containers.
func ExampleSimulation() {
	nodes := 2
	_, client, stop := run(bowsprit.Config{
		Workloads: bowsprit.WorkloadsConfig{Simulation: &bowsprit.Simulation{Nodes: &nodes, Zones: 2}},
	})
	defer stop()
	list, err := client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, node := range list.Items {
		fmt.Println(node.Name, node.Labels[corev1.LabelTopologyZone], node.Status.Capacity.Cpu())
	}
	// Output:
	// node-0 zone-0 8
	// node-1 zone-1 8
}

// RuntimeConfig switches built-in kinds off.
func ExampleAPIConfig() {
	_, client, stop := run(bowsprit.Config{
		API: bowsprit.APIConfig{RuntimeConfig: map[string]string{"batch/v1": "false"}},
	})
	defer stop()
	_, err := client.BatchV1().Jobs("default").List(context.Background(), metav1.ListOptions{})
	fmt.Println("not found:", apierrors.IsNotFound(err))
	// Output: not found: true
}
