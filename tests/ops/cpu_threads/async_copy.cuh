// kernels/headers/async_copy.cuh for threads of the processor. Unless `copy_late`, a copy happens where it is issued, so that a tile that
// is still being read shows as overwritten. With it, a copy happens where its thread waits for it, so that a tile that nobody waited for
// shows as missing. A kernel must be right in both.
#pragma once
#include <functional>

static bool copy_late = false;

struct CopiesOfThread {
    std::vector<std::function<void()>> uncommitted;
    std::vector<std::vector<std::function<void()>>> groups;
};
thread_local CopiesOfThread own_copies;

inline float* dynamic_shared_memory() {
    alignas(16) static float shared_memory[1 << 16];
    return shared_memory;
}

template <class Copy>
void issue_copy(Copy copy) {
    if (copy_late) {
        own_copies.uncommitted.push_back(copy);
    } else {
        copy();
    }
}

template <int BYTES, int TO, int FROM>
void copy_async(float* to, const float* from, bool wanted) {
    if (wanted) {
        issue_copy([=] { std::copy_n(from + FROM, BYTES / 4, to + TO); });
    }
}

template <int BYTES>
void copy_async_or_zero(float* to, const float* from, bool inside) {
    issue_copy([=] {
        for (int i = 0; i < BYTES / 4; ++i) {
            to[i] = inside ? from[i] : 0.0f;
        }
    });
}

inline void commit_copies() {
    own_copies.groups.push_back(std::move(own_copies.uncommitted));
    own_copies.uncommitted.clear();
}

template <int GROUPS>
void wait_for_copies() {
    while (own_copies.groups.size() > GROUPS) {
        for (auto& copy : own_copies.groups.front()) {
            copy();
        }
        own_copies.groups.erase(own_copies.groups.begin());
    }
}
