// Command kueue runs Kueue's queues, scheduler, controllers and webhooks: the command that the module publishes also
// serves metrics from a fixed folder of the machine, and manages its certificates by a Service in the cluster.
package main

import (
	"context"
	"flag"
	"os"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	settings "sigs.k8s.io/kueue/apis/config/v1beta2"
	"sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/cache/queue"
	cache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/config"
	"sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	_ "sigs.k8s.io/kueue/pkg/controller/jobs"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	"sigs.k8s.io/kueue/pkg/util/kubeversion"
	"sigs.k8s.io/kueue/pkg/webhooks"
)

func main() {
	file := flag.String("config", "", "Kueue's configuration")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), *file); err != nil {
		ctrl.Log.Error(err, "Kueue ends")
		os.Exit(1)
	}
}

func run(ctx context.Context, file string) error {
	known := scheme()
	options, chosen, err := config.Load(known, file)
	if err != nil {
		return err
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(chosen.FeatureGates); err != nil {
		return err
	}
	config.AddWebhookSettingsTo(&options, &chosen)
	options.Metrics = server.Options{BindAddress: "0"}
	access := ctrl.GetConfigOrDie()
	access.QPS = -1
	manager, err := ctrl.NewManager(access, options)
	if err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("webhooks", manager.GetWebhookServer().StartedChecker()); err != nil {
		return err
	}
	if err := assemble(ctx, manager, &chosen); err != nil {
		return err
	}
	return manager.Start(ctx)
}

func scheme() *runtime.Scheme {
	known := runtime.NewScheme()
	adds := []func(*runtime.Scheme) error{
		clientscheme.AddToScheme, schedulingv1.AddToScheme, v1beta2.AddToScheme, settings.AddToScheme,
	}
	for _, add := range adds {
		utilruntime.Must(add(known))
	}
	utilruntime.Must(jobframework.ForEachIntegration(func(_ string, one jobframework.IntegrationCallbacks) error {
		if one.AddToScheme == nil {
			return nil
		}
		return one.AddToScheme(known)
	}))
	return known
}

// assemble adds to the manager what admits workloads, and what makes workloads of the objects of users.
func assemble(ctx context.Context, manager ctrl.Manager, chosen *settings.Configuration) error {
	admitted := cache.New(manager.GetClient())
	requeuer := queue.NewRequeuer()
	preempted := expectations.New()
	queues := queue.NewManager(
		manager.GetClient(), admitted, requeuer, queue.WithPreemptionExpectations(preempted))
	index := manager.GetFieldIndexer()
	frameworks := jobframework.WithEnabledFrameworks(chosen.Integrations.Frameworks)
	if err := manager.Add(requeuer); err != nil {
		return err
	}
	if err := indexer.Setup(ctx, index); err != nil {
		return err
	}
	if err := jobframework.SetupIndexes(ctx, index, frameworks); err != nil {
		return err
	}
	if _, err := core.SetupControllers(manager, queues, admitted, chosen, nil, preempted, nil); err != nil {
		return err
	}
	versions, err := discovery.NewDiscoveryClientForConfig(manager.GetConfig())
	if err != nil {
		return err
	}
	version := kubeversion.NewServerVersionFetcher(versions)
	if err := version.FetchServerVersion(); err != nil {
		return err
	}
	err = jobframework.SetupControllers(
		ctx, manager, ctrl.Log, frameworks,
		jobframework.WithKubeServerVersion(version),
		jobframework.WithManagerName(constants.KueueName),
		jobframework.WithManagedJobsNamespaceSelector(labels.Everything()),
		jobframework.WithCache(admitted),
		jobframework.WithQueues(queues),
	)
	if err != nil {
		return err
	}
	if _, err := webhooks.Setup(manager, nil); err != nil {
		return err
	}
	go queues.CleanUpOnContext(ctx)
	go admitted.CleanUpOnContext(ctx)
	recorder := manager.GetEventRecorderFor(constants.AdmissionName)
	return manager.Add(scheduler.New(
		queues, admitted, manager.GetClient(), recorder, scheduler.WithPreemptionExpectations(preempted),
	))
}
