package bowsprit_test

import (
	"fmt"
	"slices"

	"github.com/bowsprit/bowsprit"
)

// A configuration without a data directory is an error, which names the flag of the setting.
func ExampleConfig_Validate() {
	fmt.Println(bowsprit.Config{}.Validate())
	fmt.Println(bowsprit.Config{Ephemeral: true}.Validate())
	// Output:
	// --data-dir is empty: name a directory, or use --ephemeral for a temporary one
	// <nil>
}

// A program binds the settings to flags of its own. Each value points into the configuration.
func ExampleConfig_Settings() {
	var config bowsprit.Config
	for _, setting := range config.Settings(bowsprit.Serve) {
		if port, ok := setting.Value.(*int); ok && setting.Name == "secure-port" {
			fmt.Println("default:", setting.Default)
			*port = 8443
		}
	}
	fmt.Println("port:", config.Listen.SecurePort)
	// Output:
	// default: 6443
	// port: 8443
}

// Bounded settings take 0 for "no limit", which is a negative value in the field.
func ExampleForm() {
	var config bowsprit.Config
	for _, setting := range config.Settings(bowsprit.KubeAPIServer) {
		if setting.Form == bowsprit.Bounded && setting.Name == "max-requests-inflight" {
			fmt.Println(setting.Name, setting.Default)
		}
	}
	// Output: max-requests-inflight 400
}

func ExampleAdmissionPlugins() {
	plugins := bowsprit.AdmissionPlugins()
	fmt.Println(plugins[0], slices.Contains(plugins, "PodSecurity"))
	// Output: NamespaceLifecycle true
}

func ExampleVersion() {
	fmt.Println("Kubernetes", bowsprit.Version().Kubernetes)
	// Output: Kubernetes 1.37.2
}

func ExampleListenConfig() {
	config := bowsprit.Config{Ephemeral: true, Listen: bowsprit.ListenConfig{SecurePort: 70000}}
	fmt.Println(config.Validate())
	// Output: --secure-port 70000 is not a port: use 1 to 65535, or 0 for a free one
}

// Validate returns all errors, one a line.
func ExampleEtcdConfig() {
	config := bowsprit.Config{Ephemeral: true}
	config.Etcd = bowsprit.EtcdConfig{Servers: []string{"etcd.example.com"}, CertFile: "client.crt"}
	fmt.Println(config.Validate())
	// Output:
	// --etcd-servers: "etcd.example.com" is not a URL such as https://127.0.0.1:2379
	// --etcd-certfile and --etcd-keyfile go together: give both or none
}

func ExampleControllersConfig() {
	config := bowsprit.Config{Ephemeral: true}
	config.Controllers.Enabled = []string{"*", "-namespace-controller"}
	fmt.Println(config.Validate())
	// Output: <nil>
}
