// kernelviz/ops/kernels/headers/im2col.cuh for the processor: the same functions.
#pragma once

inline void load_windows(
    unsigned to, const char* map, int channel, int column, int row, int image, unsigned short tap_column, unsigned short tap_row, unsigned barrier) {
    emulated::load_windows(to, map, channel, column, row, image, tap_column, tap_row, barrier);
}
inline void load_taps(unsigned to, const char* map, int channel, int tap, int filter, unsigned barrier) {
    emulated::load_taps(to, map, channel, tap, filter, barrier);
}
