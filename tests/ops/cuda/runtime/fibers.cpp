#include "fibers.h"

#include "wgmma.h"

Index threadIdx, blockIdx, blockDim, gridDim;
alignas(1024) unsigned char memory[1024];
extern "C" void call_kernel(unsigned number, const long long* arguments);
extern "C" const unsigned shared_alignment;
extern "C" unsigned char __start_static_shared[] __attribute__((weak, visibility("hidden")));
extern "C" unsigned char __stop_static_shared[] __attribute__((weak, visibility("hidden")));

static unsigned char* stacks;
static std::size_t stack_count;

#ifdef OWN_SWITCH
// Saves the registers that a function must preserve on this stack, and goes on with the other one.
asm(R"(
.text
.hidden switch_stack
.globl switch_stack
.type switch_stack, @function
switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
extern "C" void switch_stack(void** save, void* to);
static void* scheduler;
void give_way() { switch_stack(&fiber().stack_pointer, scheduler); }
static void go_on(Fiber& to) { switch_stack(&scheduler, to.stack_pointer); }
static void run_thread();
static void prepare(Fiber& one, unsigned char* stack) {
    void** top = reinterpret_cast<void**>(stack + STACK_BYTES) - 2;
    *top = reinterpret_cast<void*>(run_thread);
    one.stack_pointer = top - 6;
}
#else
static ucontext_t scheduler;
void give_way() { swapcontext(&fiber().context, &scheduler); }
static void go_on(Fiber& to) { swapcontext(&scheduler, &to.context); }
static void run_thread();
static void prepare(Fiber& one, unsigned char* stack) {
    getcontext(&one.context);
    one.context.uc_stack.ss_sp = stack;
    one.context.uc_stack.ss_size = STACK_BYTES;
    one.context.uc_link = &scheduler;
    makecontext(&one.context, run_thread, 0);
}
#endif

void fail(const std::string& what) {
    if (first_error.empty()) {
        first_error = what + " (block " + std::to_string(blockIdx.x) + ", thread " + std::to_string(threadIdx.x) + ")";
    }
    if (in_fiber) {
        give_way();  // for ever: the scheduler ends the launch
    }
}
void emulated::fail(const char* what) { ::fail(what); }

static void run_thread() {
    call_kernel(now.kernel, now.arguments);
    check_end_of_thread();
    fiber().done = true;
    fiber().ready = false;
    --ready_of_warp[current / WARP];
    --block().running;
    give_way();
}
void check_end_of_thread() {
    const Fiber& mine = fiber();
    if (!mine.product_groups.empty() || mine.products != block().warpgroups[mine.thread / WARPGROUP].first) {
        fail("products that nobody waits for");
    }
    if (!mine.stores_begun.empty() || !mine.stores.empty()) {
        fail("a thread ends before its stores");
    }
}
static void become(unsigned number) {
    current = number;
    const Fiber& one = fibers[number];
    threadIdx = {one.thread % blockDim.x, one.thread / blockDim.x, 0};
    blockIdx.x += one.block - blockIdx.x % now.cluster;
}
static void run_warp(unsigned warp) {
    while (ready_of_warp[warp] && first_error.empty()) {
        for (unsigned j = 0; j < WARP && first_error.empty(); ++j) {
            const unsigned number = warp * WARP + (now.reverse ? WARP - 1 - j : j);
            if (number < fibers.size() && fibers[number].ready) {
                become(number);
                in_fiber = true;
                go_on(fibers[number]);
                in_fiber = false;
            }
        }
    }
}
static void run_cluster() {
    const unsigned threads = now.threads_x * now.threads_y, count = threads * now.cluster, warps = (count + WARP - 1) / WARP;
    blocks = std::vector<Block>(now.cluster);
    for (Block& one : blocks) {
        one.shared.assign(now.shared_bytes, 0xff);  // not a number in every floating-point format
        one.of_warps.resize((threads + WARP - 1) / WARP);
        one.warpgroups.resize((threads + WARPGROUP - 1) / WARPGROUP);
        one.running = threads;
    }
    memset(__start_static_shared, 0xff, __stop_static_shared - __start_static_shared);
    if (now.cluster > 1 && __stop_static_shared != __start_static_shared) {
        fail("blocks of a cluster would share static shared memory");
    }
    of_cluster = {};
    fibers = std::vector<Fiber>(count);
    ready_of_warp.assign(warps, 0);
    for (unsigned i = 0; i < count; ++i) {
        fibers[i].thread = i % threads;
        fibers[i].block = i / threads;
        ++ready_of_warp[i / WARP];
        prepare(fibers[i], stacks + (std::size_t)i * STACK_BYTES);
    }
    bool more = true;
    while (more && first_error.empty()) {
        more = false;
        for (unsigned i = 0; i < warps && first_error.empty(); ++i) {
            const unsigned warp = now.reverse ? warps - 1 - i : i;
            more |= ready_of_warp[warp] > 0;
            run_warp(warp);
        }
        more = more || deliver_load();  // all threads wait: now a copy arrives
    }
    for (unsigned i = 0; i < count && first_error.empty(); ++i) {
        if (!fibers[i].done) {
            become(i);
            fail("a thread waits for what never happens");
        }
    }
}
void forget_loads();

extern "C" __attribute__((visibility("default"))) const char* run(const Launch* launch) {
    now = *launch;
    shared_base = 1024 + shared_alignment;
    first_error.clear();
    forget_loads();
    gridDim = {now.grid_x, now.grid_y, 1};
    blockDim = {now.threads_x, now.threads_y, 1};
    const std::size_t threads = (std::size_t)now.threads_x * now.threads_y * now.cluster;
    if (stack_count < threads) {
        stacks = static_cast<unsigned char*>(
            mmap(nullptr, threads * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        stack_count = threads;
    }
    const unsigned clusters = now.grid_x / now.cluster * now.grid_y;
    for (unsigned i = 0; i < clusters && first_error.empty(); ++i) {
        const unsigned cluster = now.reverse ? clusters - 1 - i : i;
        blockIdx = {cluster % (now.grid_x / now.cluster) * now.cluster, cluster / (now.grid_x / now.cluster), 0};
        run_cluster();
    }
    fibers.clear();
    return first_error.c_str();
}
