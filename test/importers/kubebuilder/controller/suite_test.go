package controller

import (
	"context"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/bowsprit/bowsprit/testserver"
)

var (
	ctx       context.Context
	cancel    context.CancelFunc
	server    *testserver.Server
	testEnv   *envtest.Environment
	k8sClient client.Client
	ended     chan error // the result of the manager
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Controller Suite")
}

var _ = BeforeSuite(func() {
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	ctx, cancel = context.WithCancel(context.Background())

	By("starting a server in this process")
	var err error
	server, err = testserver.New(testserver.WithWorkloads("nodes=1"))
	Expect(err).NotTo(HaveOccurred())

	By("installing definitions as envtest does")
	existing := true
	testEnv = &envtest.Environment{
		UseExistingCluster:    &existing,
		Config:                server.RESTConfig(),
		CRDDirectoryPaths:     []string{filepath.Join("..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	cfg, err := testEnv.Start()
	Expect(err).NotTo(HaveOccurred())

	By("installing the webhooks")
	hooks, err := server.Webhooks()
	Expect(err).NotTo(HaveOccurred())
	Expect(hooks.Install(ctx, filepath.Join("..", "config", "webhook", "manifests.yaml"))).To(Succeed())

	By("starting the manager")
	manager, err := ctrl.NewManager(cfg, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: hooks.Host, Port: hooks.Port, CertDir: hooks.CertDir,
		}),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect((&BackupReconciler{manager.GetClient()}).SetupWithManager(manager)).To(Succeed())
	ended = make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	Expect(hooks.Wait(ctx)).To(Succeed())

	k8sClient, err = client.New(cfg, client.Options{})
	Expect(err).NotTo(HaveOccurred())
})

var _ = AfterSuite(func() {
	cancel()
	if ended != nil {
		Expect(<-ended).To(Succeed())
	}
	Expect(testEnv.Stop()).To(Succeed())
	Expect(server.Stop()).To(Succeed())
})

var _ = ReportAfterSuite("the server's log", func(report Report) {
	if !report.SuiteSucceeded && server != nil {
		GinkgoWriter.Println(server.Log())
	}
})
