package controller

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stablev1 "github.com/bowsprit/bowsprit/test/clients/api/stable/v1"
)

var _ = Describe("CronTab Controller", func() {
	Context("When reconciling a resource", func() {
		const resourceName = "test-resource"
		typeNamespacedName := types.NamespacedName{Name: resourceName, Namespace: "default"}
		crontab := &stablev1.CronTab{}

		BeforeEach(func() {
			By("creating the custom resource for the Kind CronTab")
			err := k8sClient.Get(ctx, typeNamespacedName, crontab)
			if err != nil && errors.IsNotFound(err) {
				resource := &stablev1.CronTab{ObjectMeta: metav1.ObjectMeta{Name: resourceName, Namespace: "default"}}
				Expect(k8sClient.Create(ctx, resource)).To(Succeed())
			}
		})

		AfterEach(func() {
			resource := &stablev1.CronTab{}
			Expect(k8sClient.Get(ctx, typeNamespacedName, resource)).To(Succeed())
			By("Cleanup the specific resource instance CronTab")
			Expect(k8sClient.Delete(ctx, resource)).To(Succeed())
		})

		It("should successfully reconcile the resource", func() {
			By("Reconciling the created resource")
			controllerReconciler := &CronTabReconciler{Client: k8sClient, Scheme: k8sClient.Scheme()}
			_, err := controllerReconciler.Reconcile(ctx, reconcile.Request{NamespacedName: typeNamespacedName})
			Expect(err).NotTo(HaveOccurred())
			Expect(k8sClient.Get(ctx, typeNamespacedName, crontab)).To(Succeed())
			Expect(crontab.Status.Replicas).To(BeEquivalentTo(1))
		})
	})
})
