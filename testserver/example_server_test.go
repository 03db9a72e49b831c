package testserver_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestMain of a package can share one server among its tests: var server *testserver.Server.
func ExampleNew() {
	run := func(m *testing.M) int {
		server, err := testserver.New()
		if err != nil {
			log.Fatal(err)
		}
		defer server.Stop()
		code := m.Run()
		if code != 0 {
			log.Print(server.Log())
		}
		return code
	}
	_ = func(m *testing.M) { os.Exit(run(m)) } // the body of TestMain

	server, err := testserver.New() // outside of a test
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(server.Stop())
	// Output: <nil>
}

// A configuration may set any field of bowsprit.Config.
func ExampleNew_configure() {
	server, err := testserver.New(func(c *bowsprit.Config) { c.Admission.Disabled = []string{"LimitRanger"} })
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	fmt.Println(strings.HasPrefix(server.URL(), "https://127.0.0.1:"))
	// Output: true
}

// A wrong configuration is an error before the start.
func ExampleNew_error() {
	_, err := testserver.New(testserver.WithWorkloads("nodes=many"))
	fmt.Println(err)
	// Output: --simulate: nodes=many: use a number such as 3
}

func ExampleServer_RESTConfig() {
	server, err := testserver.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		log.Fatal(err)
	}
	ns, err := client.CoreV1().Namespaces().Get(context.Background(), "default", metav1.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ns.Name, ns.Status.Phase)
	// Output: default Active
}

func ExampleServer_Kubeconfig() {
	server, err := testserver.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	config, err := clientcmd.BuildConfigFromFlags("", server.Kubeconfig())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(config.Host == server.URL())
	// Output: true
}

// Install applies definitions and objects of files and directories, in an order that works.
func ExampleServer_Install() {
	server, err := testserver.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	ctx := context.Background()
	if err := server.Install(ctx, "testdata/operator/crd", "testdata/operator/objects"); err != nil {
		log.Fatal(err)
	}
	client, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		log.Fatal(err)
	}
	list, err := client.Resource(backups).List(ctx, metav1.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range list.Items {
		fmt.Println(o.GetNamespace(), o.GetName())
	}
	// Output:
	// default weekly
	// team nightly
}

// The error of Install names the file and the object.
func ExampleServer_Install_error() {
	server, err := testserver.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	err = server.Install(context.Background(), "testdata/operator/webhook/service.yaml") // its namespace is missing
	fmt.Println(err)
	// Output: testdata/operator/webhook/service.yaml: Service webhook-service: namespaces "system" not found
}

// A user has the permissions that bindings grant.
func ExampleServer_User() {
	server, err := testserver.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	ctx := context.Background()
	admin, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		log.Fatal(err)
	}
	_, err = admin.RbacV1().RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "dev"},
		Subjects:   []rbacv1.Subject{{Kind: "Group", Name: "dev", APIGroup: "rbac.authorization.k8s.io"}},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "view", APIGroup: "rbac.authorization.k8s.io"},
	}, metav1.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	alice, err := server.User("alice", "dev")
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(alice.RESTConfig())
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	fmt.Println("list:", err)
	err = client.CoreV1().ConfigMaps("default").Delete(ctx, "any", metav1.DeleteOptions{})
	fmt.Println("delete:", apierrors.ReasonForError(err))
	// Output:
	// list: <nil>
	// delete: Forbidden
}

// Impersonation needs no certificate: the administrator may act as any user or ServiceAccount.
func ExampleServer_RESTConfig_impersonate() {
	server, err := testserver.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	config := server.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:default:operator"}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.CoreV1().Pods("default").List(context.Background(), metav1.ListOptions{})
	fmt.Println(apierrors.IsForbidden(err))
	// Output: true
}

func ExampleUser_Kubeconfig() {
	server, err := testserver.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	alice, err := server.User("alice")
	if err != nil {
		log.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(alice.Kubeconfig())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(config.CurrentContext)
	// Output: alice@bowsprit
}

// The arguments are kubectl's. The command's Env, Stdin and Stdout may be changed before it runs.
func ExampleServer_Kubectl() {
	var t *testing.T // the test's own
	server := testserver.Start(t)
	cmd := server.Kubectl("apply", "-f", "-")
	cmd.Stdin = strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"}}`)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// kubectl with the rights of a user shows an error as the user sees it.
func ExampleUser_Kubectl() {
	var t *testing.T // the test's own
	server := testserver.Start(t)
	alice, err := server.User("alice")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := alice.Kubectl("get", "secrets").CombinedOutput(); err == nil {
		t.Errorf("alice can list secrets:\n%s", out)
	}
}

// A manager serves the webhooks at the address; the server calls them there.
func ExampleServer_Webhooks() {
	server, err := testserver.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	hooks, err := server.Webhooks()
	if err != nil {
		log.Fatal(err)
	}
	err = hooks.Install(context.Background(), "testdata/operator/crd", "testdata/operator/webhook")
	if err != nil {
		log.Fatal(err)
	}
	// With controller-runtime:
	//	webhook.NewServer(webhook.Options{Host: hooks.Host, Port: hooks.Port, CertDir: hooks.CertDir})
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		log.Fatal(err)
	}
	list, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(context.Background(),
		metav1.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range list.Items {
		url := *c.Webhooks[0].ClientConfig.URL
		fmt.Println(url == fmt.Sprintf("https://%s:%d/validate-backups", hooks.Host, hooks.Port))
	}
	// Output: true
}

// The test of a client without its server.
func ExampleServer_Stop() {
	server, err := testserver.New()
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		log.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		log.Fatal(err)
	}
	_, err = client.CoreV1().Namespaces().List(context.Background(), metav1.ListOptions{})
	fmt.Println(err != nil)
	// Output: true
}

func ExampleServer_Log() {
	server, err := testserver.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	fmt.Println(strings.Contains(server.Log(), "msg=ready"))
	// Output: true
}

// Pods of a Deployment become ready without containers.
func ExampleNew_workloads() {
	server, err := testserver.New(testserver.WithWorkloads("nodes=2"))
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	ctx := context.Background()
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		log.Fatal(err)
	}
	pods := client.CoreV1().Pods("default")
	watch, err := pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer watch.Stop()
	_, err = pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for event := range watch.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && pod.Status.Phase == corev1.PodRunning {
			fmt.Println(pod.Name, "runs")
			break
		}
	}
	// Output: web runs
}
